/** The input and the steps of phased work in scripts. Each step is one field of the journal, packed. */
import { recoveryCodes, stepKindCodes, stepStateCodes } from '../../shared/codes.ts'

const { open, again, done } = stepStateCodes

/** n name · k kind · s state · x value · e epoch · t opened at · u repeatable until · y downstream key. */
export const stepsLua: string = `
local function stepAt(position)
  local packed = redis.call('HGET', journal, 's' .. position)
  return packed and cmsgpack.unpack(packed)
end

local function putStep(position, step)
  redis.call('HSET', journal, 's' .. position, cmsgpack.pack(step))
end

-- In the order of their positions.
local function allSteps()
  local found = {}
  local fields = redis.call('HGETALL', journal)
  for at = 1, #fields, 2 do
    if fields[at]:sub(1, 1) == 's' then
      local step = cmsgpack.unpack(fields[at + 1])
      step.position = tonumber(fields[at]:sub(2))
      found[#found + 1] = step
    end
  end
  table.sort(found, function(one, other) return one.position < other.position end)
  return found
end

-- An open intent that may not be repeated: nobody can continue with it.
local function isStuck()
  for _, step in ipairs(allSteps()) do
    if step.s == ${open} and not (step.u and step.u > now) then return true end
  end
  return false
end

local function readJournal()
  local input = redis.call('HMGET', journal, 'v', 'in', 'dl')
  if not input[1] then return false end
  local steps = {}
  for at, step in ipairs(allSteps()) do
    steps[at] = { step.position, step.n, step.k, step.s, step.x or false, step.e, step.u or false }
  end
  return { now, input, steps }
end

-- Work that has begun keeps the input it began with, and its deadline.
local function keepInput(version, input, deadlineInMs)
  if redis.call('HSETNX', journal, 'v', version) == 0 then return end
  redis.call('HSET', journal, 'in', input)
  if deadlineInMs ~= '' then redis.call('HSET', journal, 'dl', now + deadlineInMs) end
end`

/** For scripts that also know the row. */
export const doubtLua: string = `
-- The effect in doubt. Steps are reached in order: it is the first one that is open.
local function openEffect()
  if recovery ~= ${recoveryCodes.resume} then return nil end
  for _, step in ipairs(allSteps()) do
    if step.s == ${open} then return step end
  end
end

-- Known not to have happened: by its owner, who may use its key again (0), or by evidence, after which the key is a new one (1).
local function allowAgain(position, raised)
  for _, step in ipairs(allSteps()) do
    if step.s == ${open} and (not position or step.position == position) then
      local at = step.position
      step.s, step.e, step.position = ${again}, step.e + raised, nil
      putStep(at, step)
    end
  end
end

local function finishEffect(position, value)
  local step = stepAt(position)
  if not step or step.k ~= ${stepKindCodes.effect} or step.s == ${again} then return false end
  -- Done already: the reply to the first write was lost, and the first value stays.
  if step.s == ${open} then
    step.s, step.x = ${done}, value
    putStep(position, step)
  end
  return true
end`

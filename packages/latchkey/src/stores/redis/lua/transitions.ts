/** What the transitions of a row have in common. For scripts with all parts of a row, and the arguments `id`. */
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { saveLua } from '../keys/packed-row.ts'

const { pending, completed, failed_retryable: failedRetryable, unknown } = stateCodes

/** Out of the indexes that have a row by its operation as well, where that cannot be read any more. Few rows are unknown. */
export const endDoubtUnreadLua: string = `
local function endDoubtUnread()
  for _, member in ipairs(redis.call('ZRANGE', unknowns, 0, -1)) do
    if member:sub(1, 16) == id then
      redis.call('ZREM', unknowns, member)
      redis.call('ZREM', lookups, member)
    end
  end
end`

/** Where the row goes, and out of which indexes. */
export const transitionsLua: string = `${saveLua}
local function leaveIndexes()
  redis.call('ZREM', leases, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', unknowns, id .. operation)
  redis.call('ZREM', lookups, id .. operation)
  redis.call('ZREM', parked, id)
end

local function endDoubt()
  call, more.pk, more.lo, more.lt, more.la, more.ld = '', nil, nil, nil, nil, nil
end

local function moveExpiry(expiresAt)
  expires = expiresAt
  redis.call('ZADD', expiries, expiresAt, id)
end

-- No later generation finds the journal of this one.
local function endJournal()
  if recovery == ${recoveryCodes.resume} then redis.call('PEXPIREAT', journal, goesAt()) end
end

local function toUnknown()
  leaveIndexes()
  endDoubt()
  state, at = ${unknown}, now
  more.lo, more.lt, more.la = 0, 0, now
  save()
  redis.call('ZADD', unknowns, now, id .. operation)
  redis.call('ZADD', lookups, now, id .. operation)
end

-- It may be tried again. Phased work that was unknown has steps behind it: it continues, where guarded work begins again.
local function toWaiting(to, dueAt)
  leaveIndexes()
  endDoubt()
  state, at = to, dueAt
  save()
  if recovery == ${recoveryCodes.resume} then redis.call('ZADD', queue, dueAt, id) end
  redis.call('ZADD', expiries, expires, id)
  if to == ${failedRetryable} then endJournal() else redis.call('PERSIST', journal) end
end

local function untried()
  if recovery == ${recoveryCodes.resume} then return ${pending} end
  return ${failedRetryable}
end

-- The expiry moves only if the answer would be kept for less time than promised: nothing shortens it.
local function toCompleted(answer, retentionMs)
  leaveIndexes()
  endDoubt()
  state, at = ${completed}, now
  moveExpiry(math.max(expires, now + retentionMs))
  save(answer)
  endJournal()
end`

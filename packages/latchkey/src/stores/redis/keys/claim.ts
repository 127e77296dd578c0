/** The claim of guarded and phased work. */
import { systemClock } from '../../../ports/clock.ts'
import { errorText, isError, LatchkeyError } from '../../../ports/errors.ts'
import type { ClaimRequest, ClaimResult, GrantedFrom, TakeOver } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { grantedFrom } from '../../shared/grant.ts'
import { isOutOfMemory } from '../connection/errors.ts'
import type { Link } from '../connection/link.ts'
import { isShortOfReplicas } from '../connection/replicas.ts'
import { listOf, numberOf, textOf } from '../connection/reply.ts'
import { givenLua, optional, optionalMs, type Script, wholeMs } from '../connection/script.ts'
import type { RedisArgument, Reply } from '../../shared/redis/driver.ts'
import { stepsLua } from '../lua/steps.ts'
import { journalFrom } from '../steps/journal.ts'
import { release } from './release.ts'
import { bufferOf, knownRecoveryLua, lifeLua, memberOf, readFieldsLua, readRecord, recordFrom } from './row.ts'

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable } = stateCodes
const { rerun, resume } = recoveryCodes

/**
 * The next fence. A row that is there continues its own. For one that is not, it begins with the time in microseconds, so that it rises even where
 * everything was lost; the floor keeps it rising while the clock of the server is set back.
 */
export const nextFenceLua: string = `
local function nextFence(before)
  local highest = tonumber(redis.call('GET', floor) or 0)
  local fence = before and before + 1 or math.max(highest + 1, time[1] * 1000000 + time[2])
  if fence > highest then redis.call('SET', floor, string.format('%.0f', fence)) end
  return fence
end`

/** What the row is once it is granted, and who gets it. Every comparison is in the script. */
const claimScript: Script = {
  flags: '',
  isReplicated: true,
  parts: ['row', 'outcome', 'journal', 'leases', 'queue', 'expiries', 'floor'],
  args: [
    ...['id', 'claimId', 'fingerprint', 'recovery', 'leaseMs', 'expiresInMs', 'tombstoneMs', 'description'],
    ...['scope', 'operation', 'takeOver', 'version', 'input', 'deadlineInMs', 'call'],
  ],
  body: `${givenLua}${lifeLua}${knownRecoveryLua}${stepsLua}${nextFenceLua}
local found = ${readFieldsLua}
local state = found[1]

-- In the order of the port: a key that is reused for another request is never granted, not even over a dead lease.
local function whyGranted()
  if takeOver ~= '' and takeOver ~= found[4] .. ' ' .. found[5] then return nil end
  if found[13] or found[3] ~= fingerprint or not isKnown(found[2]) then return nil end
  if state == '${pending}' and tonumber(found[9]) <= now then return 'pending' end
  if state == '${failedRetryable}' and tonumber(found[9]) <= now then return 'failed_retryable' end
  if state ~= '${inProgress}' or tonumber(found[8]) > now then return nil end
  if found[2] == '${rerun}' or found[2] == '${resume}' and not isStuck() then return 'dead-lease' end
end

-- The client has sent this call again, because the reply to the first was lost on its way: the lease is written again, and nothing else.
if state == '${inProgress}' and found[5] == claimId and redis.call('HGET', row, 'ca') == call then
  redis.call('HSET', row, 'lu', now + leaseMs)
  redis.call('ZADD', leases, now + leaseMs, id)
  local first = found[6] == '1' and 'none' or 'failed_retryable'
  return { 1, found[4], found[6], found[7], first, readJournal() }
end

local from, isNew = 'none', true
if state then
  local over, gone = lifeOf(found)
  isNew = over and not gone
  from = isNew and 'expired' or whyGranted()
  if not from then return { 0, now, found, state == '${completed}' and redis.call('GET', outcome) } end
end

local fence = nextFence(state and found[4])
local attempts, crashes = 1, 0
if isNew then
  -- What an earlier generation of the row left behind is not of this one.
  if state then redis.call('DEL', row, outcome, journal) else redis.call('DEL', outcome, journal) end
  redis.call('HSET', row, 'cd', now)
else
  attempts = found[6] + 1
  crashes = found[7] + (state == '${inProgress}' and 1 or 0)
  redis.call('PERSIST', row)
  redis.call('HDEL', row, 'du', 'tb')
end
redis.call('HSET', row, 's', ${inProgress}, 'r', recovery, 'fp', fingerprint, 'f', fence, 'c', claimId, 'at', attempts,
  'cr', crashes, 'lu', now + leaseMs, 'ex', now + expiresInMs, 'sc', scope, 'op', operation, 'ca', call)
if tombstoneMs ~= '' then redis.call('HSET', row, 'tb', tombstoneMs) end
if given(description) then redis.call('HSET', row, 'de', given(description)) end
redis.call('ZADD', leases, now + leaseMs, id)
redis.call('ZADD', expiries, now + expiresInMs, id)
if state then redis.call('ZREM', queue, id) end
if version ~= '' then keepInput(version, input, deadlineInMs) end
local isGuarded = from == 'none' and version == ''
return { 1, string.format('%.0f', fence), attempts, crashes, from, not isGuarded and readJournal() }`,
}

export async function claim(link: Link, request: ClaimRequest): Promise<ClaimResult> {
  const { id } = request.identity
  try {
    return resultOf(request, await link.run(claimScript, id, argumentsOf(request)))
  } catch (error) {
    if (isShortOfReplicas(error)) throw await undone(link, request, error)
    const cause = isError(error) ? error.cause : undefined
    if (!isOutOfMemory(cause)) throw error
    return seenWithoutMemory(link, request, error)
  }
}

/**
 * A claim that a failover could lose must not run. It is released, and then it has done nothing; phased work may be resumed by a worker all the same,
 * which its caller is told.
 */
async function undone(link: Link, { identity, claimId, recovery }: ClaimRequest, error: unknown): Promise<unknown> {
  await release(link, identity.id, claimId).catch(() => 'not-yours')
  if (recovery === 'resume') return error
  return new LatchkeyError('store-unavailable', errorText(error), { cause: error, sent: false })
}

/** A server without memory grants nothing new, and can still be read: who only wants the answer gets it. */
async function seenWithoutMemory(link: Link, request: ClaimRequest, error: unknown): Promise<ClaimResult> {
  const record = await readRecord(link, request.identity.id)
  const { fingerprint, takeOver } = request
  const from = grantedFrom(record, { fingerprint, takeOver, isStuck: () => false })
  if (record === undefined || from !== undefined) throw error
  return { kind: 'seen', record }
}

const thisProcess = systemClock.randomId().slice(0, 8)
let calls = 0

/** Tells a call that the client has sent twice from two calls: ioredis sends again what had no reply when its connection broke. */
function nextCall(): string {
  calls += 1
  return `${thisProcess}${calls.toString(36)}`
}

function argumentsOf(request: ClaimRequest): RedisArgument[] {
  const { identity, claimId, fingerprint, recovery, leaseMs, expiresInMs, tombstoneMs, description, work } = request
  return [
    memberOf(identity.id),
    claimId,
    bufferOf(fingerprint),
    String(recoveryCodes[recovery]),
    wholeMs(leaseMs),
    wholeMs(expiresInMs),
    optionalMs(tombstoneMs),
    optional(description),
    identity.scope,
    identity.operation,
    takeOverText(request.takeOver),
    work === undefined ? '' : String(work.version),
    work?.input ?? '',
    optionalMs(work?.deadlineInMs),
    nextCall(),
  ]
}

/** As the row spells its own grant; `none` is a text that no grant has. */
function takeOverText(takeOver: TakeOver | undefined): string {
  if (takeOver === undefined || takeOver === 'none') return takeOver ?? ''
  return `${takeOver.fence} ${takeOver.claimId}`
}

function resultOf({ identity, claimId }: ClaimRequest, reply: Reply): ClaimResult {
  const [granted, ...rest] = listOf(reply)
  if (granted === 0) {
    const record = recordFrom(identity.id, rest)
    if (record !== undefined) return { kind: 'seen', record }
  }
  const [fence, attempts, crashes, from, journal] = rest
  const won = {
    kind: 'won',
    claim: { id: identity.id, fence: numberOf(fence), claimId },
    attempt: numberOf(attempts),
    crashes: numberOf(crashes),
    // The script returns no other words.
    from: textOf(from) as GrantedFrom,
  } as const
  const found = journalFrom(journal)
  return found === undefined ? won : { ...won, journal: found }
}

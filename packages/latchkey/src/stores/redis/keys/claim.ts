/** The claim of guarded and phased work. */
import { systemClock } from '../../../ports/clock.ts'
import { errorText, isError, LatchkeyError } from '../../../ports/errors.ts'
import type { ClaimRequest, ClaimResult, GrantedFrom, TakeOver } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { grantedFrom } from '../../shared/grant.ts'
import type { RedisArgument, Reply } from '../../shared/redis/driver.ts'
import { isOutOfMemory } from '../connection/errors.ts'
import { hexOf } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { isShortOfReplicas } from '../connection/replicas.ts'
import { listOf, numberOf, textOf } from '../connection/reply.ts'
import { givenLua, optional, optionalMs, type Script, type ScriptForMany, wholeMs } from '../connection/script.ts'
import { stepsLua } from '../lua/steps.ts'
import { journalFrom } from '../steps/journal.ts'
import { fenceOffset, packTail, quickLua, renewLua, rowLua, saveLua, uuidBytes } from './packed-row.ts'
import { release } from './release.ts'
import { bufferOf, knownRecoveryLua, lifeLua, readRecord, recordFrom } from './row.ts'

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable } = stateCodes
const { rerun, resume } = recoveryCodes

/**
 * The next fence. A row that is there continues its own. For one that is not, it begins with the time in microseconds, so that it rises even where
 * everything was lost; the floor keeps it rising while the clock of the server is set back.
 */
export const nextFenceLua: string = `
local function nextFence(before, floor)
  local fence = before and before + 1 or time[1] * 1000000 + time[2]
  local highest = tonumber(redis.call('SET', floor, fence, 'GET') or 0)
  if highest < fence then return fence end
  if not before then fence = highest + 1 end
  redis.call('SET', floor, math.max(fence, highest))
  return fence
end`

/** As many bytes of rows are returned by one script; who would get more asks alone. */
const returnedBytesMax = 1_048_576

/**
 * The usual cases: there is no row, or one that is completed or in progress. 0: the other script decides. A number: granted with this fence. A list:
 * the row that was seen.
 */
const claimNewScript: ScriptForMany = {
  flags: '',
  isReplicated: true,
  parts: ['row', 'leases', 'expiries', 'floor'],
  each: {
    format: '<c16c16BdddI4c0',
    args: ['id', 'claimId', 'recovery', 'leaseMs', 'expiresInMs', 'tombstoneMs', 'tail'],
  },
  shared: `${quickLua}
local returned = 0
-- As in nextFence, for a row that is not there.
local seed = time[1] * 1000000 + time[2]
local seedText = whole(seed)`,
  body: `
local leaseEnd, expires = now + leaseMs, now + expiresInMs
local packed = redis.call('SET', row, packHead(${inProgress}, recovery, 1, 0, seed, now, expires, leaseEnd, tombstoneMs, claimId) .. tail, 'NX', 'GET')
if packed then
  local isKnown, state, _, _, _, _, _, expires, at, _, owner = headOf(packed)
  local isSeen = isKnown and (state == ${completed} and expires > now or state == ${inProgress} and at > now and owner ~= claimId)
  returned = returned + #packed
  if not isSeen or returned > ${returnedBytesMax} then return 0 end
  return { now, packed }
end
local fence = seed
local highest = redis.call('SET', floor, seedText, 'GET')
if highest and tonumber(highest) >= seed then
  fence = highest + 1
  redis.call('SET', floor, whole(fence))
  redis.call('SETRANGE', row, ${fenceOffset}, struct.pack('<d', fence))
end
redis.call('ZADD', leases, whole(leaseEnd), id)
redis.call('ZADD', expiries, whole(expires), id)
return fence`,
}

/** What the row is once it is granted, and who gets it. Every comparison is in the script. */
const claimScript: Script = {
  flags: '',
  isReplicated: true,
  parts: ['row', 'journal', 'leases', 'queue', 'expiries', 'floor'],
  args: [
    ...['id', 'claimId', 'ownFingerprint', 'ownRecovery', 'leaseMs', 'expiresInMs', 'tombstoneMs', 'description'],
    ...['ownScope', 'ownOperation', 'takeOver', 'version', 'input', 'deadlineInMs', 'ownCall'],
  ],
  body: `${givenLua}${rowLua}${saveLua}${renewLua}${lifeLua}${knownRecoveryLua}${stepsLua}${nextFenceLua}
-- In the order of the port: a key that is reused for another request is never granted, not even over a dead lease.
local function whyGranted()
  if takeOver ~= '' and takeOver ~= string.format('%.0f ', fence) .. claim then return nil end
  if more.pk or fingerprint ~= ownFingerprint or not isKnown(recovery) then return nil end
  if state == ${pending} and at <= now then return 'pending' end
  if state == ${failedRetryable} and at <= now then return 'failed_retryable' end
  if state ~= ${inProgress} or at > now then return nil end
  if recovery == ${rerun} or recovery == ${resume} and not isStuck() then return 'dead-lease' end
end

local isPhased = tonumber(ownRecovery) == ${resume}

-- The client has sent this call again, because the reply to the first was lost on its way: the lease is written again, and nothing else.
if state == ${inProgress} and claim == claimId and call == ownCall then
  renew(leaseMs)
  return { 1, fence, attempts, crashes, attempts == 1 and 'none' or 'failed_retryable', isPhased and readJournal() }
end

local from, isNew = 'none', true
if state then
  local over, gone = lifeOf()
  isNew = over and not gone
  from = isNew and 'expired' or whyGranted()
  if not from then return { 0, now, packed } end
  redis.call('ZREM', queue, id)
end

fence = nextFence(fence, floor)
if isNew then
  -- What an earlier generation of the row left behind is not of this one.
  redis.call('DEL', journal)
  attempts, crashes, created, more = 1, 0, now, {}
else
  redis.call('PERSIST', journal)
  attempts, crashes = attempts + 1, crashes + (state == ${inProgress} and 1 or 0)
end
more.de = given(description) or more.de
state, recovery, at, expires, tombstone = ${inProgress}, tonumber(ownRecovery), now + leaseMs, now + expiresInMs, tonumber(tombstoneMs) or 0
claim, call, fingerprint, scope, operation = claimId, ownCall, ownFingerprint, ownScope, ownOperation
save()
redis.call('ZADD', leases, at, id)
redis.call('ZADD', expiries, expires, id)
if version ~= '' then keepInput(version, input, deadlineInMs) end
return { 1, fence, attempts, crashes, from, isPhased and readJournal() }`,
}

/** With the name of the call: see `nextCall`. */
interface Asked {
  readonly request: ClaimRequest
  readonly call: string
}

/** `failed` is told of every error. */
export function claimer(link: Link, failed: (error: unknown) => void): (request: ClaimRequest) => Promise<ClaimResult> {
  const alone = async (asked: Asked): Promise<ClaimResult> => {
    try {
      const reply = await link.run(claimScript, asked.request.identity.id, argumentsOf(asked))
      return resultOf(asked.request, reply)
    } catch (error) {
      return unanswered(asked.request, error)
    }
  }

  async function unanswered(request: ClaimRequest, error: unknown): Promise<ClaimResult> {
    failed(error)
    if (isShortOfReplicas(error)) throw await undone(link, request, error)
    const cause = isError(error) ? error.cause : undefined
    if (!isOutOfMemory(cause)) throw error
    return seenWithoutMemory(link, request, error)
  }

  const together = link.together<Asked, ClaimResult>({
    script: claimNewScript,
    pack: packedClaim,
    resultOf(asked, reply, lack) {
      if (reply === 0) return alone(asked)
      const { identity, claimId } = asked.request
      if (typeof reply !== 'number') return { kind: 'seen', record: recordFrom(identity.id, reply) }
      if (lack !== undefined) return unanswered(asked.request, lack)
      return { kind: 'won', claim: { id: identity.id, fence: reply, claimId }, attempt: 1, crashes: 0, from: 'none' }
    },
    failed: ({ request }, error) => unanswered(request, error),
  })

  return request => {
    const asked = { request, call: nextCall() }
    // Phased work has a journal, which is written with the grant.
    return request.recovery === 'resume' ? alone(asked) : together(asked)
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
  const { fingerprint, takeOver, claimId } = request
  const from = grantedFrom(record, { fingerprint, takeOver, isStuck: () => false })
  // Its own: an earlier sending of this claim was granted, and its reply was lost.
  if (record === undefined || from !== undefined || record.claimId === claimId) throw error
  return { kind: 'seen', record }
}

const thisProcess = systemClock.randomId().slice(0, 8)
let calls = 0

/** Tells a call that the client has sent twice from two calls: ioredis sends again what had no reply when its connection broke. */
function nextCall(): string {
  calls += 1
  return `${thisProcess}${calls.toString(36)}`
}

const packedHead = 61

/** In the order of the script. */
function packedClaim({ request, call }: Asked): Buffer {
  const { identity, claimId, recovery, leaseMs, expiresInMs, tombstoneMs = 0 } = request
  const bytes = packTail(request, { call, before: packedHead })
  bytes.write(hexOf(identity.id), 0, 'hex')
  bytes.write(hexOf(claimId), 16, 'hex')
  bytes.writeUInt8(recoveryCodes[recovery], 32)
  bytes.writeDoubleLE(Math.ceil(leaseMs), 33)
  bytes.writeDoubleLE(Math.ceil(expiresInMs), 41)
  bytes.writeDoubleLE(Math.ceil(tombstoneMs), 49)
  bytes.writeUInt32LE(bytes.length - packedHead, 57)
  return bytes
}

function argumentsOf({ request, call }: Asked): RedisArgument[] {
  const { identity, claimId, fingerprint, recovery, leaseMs, expiresInMs, tombstoneMs, description, work } = request
  return [
    uuidBytes(identity.id),
    uuidBytes(claimId),
    bufferOf(fingerprint),
    String(recoveryCodes[recovery]),
    wholeMs(leaseMs),
    wholeMs(expiresInMs),
    optionalMs(tombstoneMs),
    optional(description),
    identity.scope,
    identity.operation,
    takeOverBytes(request.takeOver),
    work === undefined ? '' : String(work.version),
    work?.input ?? '',
    optionalMs(work?.deadlineInMs),
    call,
  ]
}

/** As the script spells the grant of the row; `none` is a text that no grant has. */
function takeOverBytes(takeOver: TakeOver | undefined): RedisArgument {
  if (takeOver === undefined || takeOver === 'none') return takeOver ?? ''
  return Buffer.concat([Buffer.from(`${takeOver.fence} `), uuidBytes(takeOver.claimId)])
}

function resultOf({ identity, claimId }: ClaimRequest, reply: Reply): ClaimResult {
  const [granted, ...rest] = listOf(reply)
  if (granted === 0) return { kind: 'seen', record: recordFrom(identity.id, rest) }
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

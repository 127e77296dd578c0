/** Work for later: the row waits for a worker, with its input beside it. */
import type { EnqueueRequest, EnqueueResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { listOf } from '../connection/reply.ts'
import { givenLua, optional, optionalMs, type Script, wholeMs } from '../connection/script.ts'
import { stepsLua } from '../lua/steps.ts'
import { nextFenceLua } from './claim.ts'
import { rowLua, saveLua, uuidBytes } from './packed-row.ts'
import { bufferOf, lifeLua, recordFrom } from './row.ts'

const { pending } = stateCodes

const enqueueScript: Script = {
  flags: '',
  isReplicated: true,
  parts: ['row', 'journal', 'queue', 'expiries', 'floor'],
  args: [
    ...['id', 'claimId', 'ownFingerprint', 'expiresInMs', 'tombstoneMs', 'description', 'ownScope', 'ownOperation'],
    ...['version', 'input', 'deadlineInMs'],
  ],
  body: `${givenLua}${rowLua}${saveLua}${lifeLua}${stepsLua}${nextFenceLua}
if state then
  -- The client has sent it again, because the reply to the first was lost on its way.
  if state == ${pending} and claim == claimId then return { 1 } end
  local over, gone = lifeOf()
  if not over or gone then return { 0, now, packed } end
end
redis.call('DEL', journal)
state, recovery, attempts, crashes, fence = ${pending}, ${recoveryCodes.resume}, 0, 0, nextFence(fence, floor)
created, expires, at, tombstone = now, now + expiresInMs, now, tonumber(tombstoneMs) or 0
claim, call, fingerprint, scope, operation, more = claimId, '', ownFingerprint, ownScope, ownOperation, { de = given(description) }
save()
redis.call('ZADD', queue, now, id)
redis.call('ZADD', expiries, expires, id)
keepInput(version, input, deadlineInMs)
return { 1 }`,
}

export async function enqueue(link: Link, request: EnqueueRequest): Promise<EnqueueResult> {
  const { identity, claimId, fingerprint, expiresInMs, tombstoneMs, description, work } = request
  const reply = await link.run(enqueueScript, identity.id, [
    uuidBytes(identity.id),
    uuidBytes(claimId),
    bufferOf(fingerprint),
    wholeMs(expiresInMs),
    optionalMs(tombstoneMs),
    optional(description),
    identity.scope,
    identity.operation,
    String(work.version),
    work.input,
    optionalMs(work.deadlineInMs),
  ])
  const [queued, ...seen] = listOf(reply)
  return queued === 0 ? { kind: 'seen', record: recordFrom(identity.id, seen) } : { kind: 'queued' }
}

/** Work for later: the row waits for a worker, with its input beside it. */
import type { EnqueueRequest, EnqueueResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { listOf } from '../connection/reply.ts'
import { givenLua, optional, optionalMs, type Script, wholeMs } from '../connection/script.ts'
import { stepsLua } from '../lua/steps.ts'
import { nextFenceLua } from './claim.ts'
import { bufferOf, lifeLua, memberOf, readFieldsLua, recordFrom } from './row.ts'

const { pending, completed } = stateCodes

const enqueueScript: Script = {
  flags: '',
  isReplicated: true,
  parts: ['row', 'outcome', 'journal', 'queue', 'expiries', 'floor'],
  args: [
    ...['id', 'claimId', 'fingerprint', 'expiresInMs', 'tombstoneMs', 'description', 'scope', 'operation'],
    ...['version', 'input', 'deadlineInMs'],
  ],
  body: `${givenLua}${lifeLua}${stepsLua}${nextFenceLua}
local found = ${readFieldsLua}
local state = found[1]
if state then
  -- The client has sent it again, because the reply to the first was lost on its way.
  if state == '${pending}' and found[5] == claimId then return { 1 } end
  local over, gone = lifeOf(found)
  if not over or gone then return { 0, now, found, state == '${completed}' and redis.call('GET', outcome) } end
end
local fence = nextFence(state and found[4])
redis.call('DEL', row, outcome, journal)
redis.call('HSET', row, 's', ${pending}, 'r', ${recoveryCodes.resume}, 'fp', fingerprint, 'f', fence, 'c', claimId, 'at', 0,
  'cr', 0, 'du', now, 'cd', now, 'ex', now + expiresInMs, 'sc', scope, 'op', operation)
if tombstoneMs ~= '' then redis.call('HSET', row, 'tb', tombstoneMs) end
if given(description) then redis.call('HSET', row, 'de', given(description)) end
redis.call('ZADD', queue, now, id)
redis.call('ZADD', expiries, now + expiresInMs, id)
keepInput(version, input, deadlineInMs)
return { 1 }`,
}

export async function enqueue(link: Link, request: EnqueueRequest): Promise<EnqueueResult> {
  const { identity, claimId, fingerprint, expiresInMs, tombstoneMs, description, work } = request
  const reply = await link.run(enqueueScript, identity.id, [
    memberOf(identity.id),
    claimId,
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
  const record = queued === 0 ? recordFrom(identity.id, seen) : undefined
  return record === undefined ? { kind: 'queued' } : { kind: 'seen', record }
}

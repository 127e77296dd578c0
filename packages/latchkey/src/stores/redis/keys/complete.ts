/** The owner's answer: in time, late, or repeated. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { packOutcome } from '../../shared/packed-outcome.ts'
import type { Link } from '../connection/link.ts'
import { numberOf } from '../connection/reply.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import { graceMs } from '../lua/transitions.ts'
import { ownerArgs, ownerArguments, ownerResult, ownerScript } from './owner.ts'

const { in_progress: inProgress, completed, unknown } = stateCodes

/** The usual case, which leaves no doubt about what the row was before. 0: the other script finds out. */
const completeInTimeScript: Script = {
  flags: 'allow-oom',
  isReplicated: true,
  parts: ['row', 'outcome', 'leases', 'expiries'],
  args: [...ownerArgs, 'retentionMs', 'answer'],
  body: `
local found = redis.call('HMGET', row, 's', 'f', 'c', 'ex', 'tb')
if found[1] ~= '${inProgress}' or found[2] ~= ownFence or found[3] ~= ownClaim then return 0 end
local expires = tonumber(found[4])
if expires < now + retentionMs then
  expires = now + retentionMs
  redis.call('ZADD', expiries, expires, id)
end
local goesAt = expires + (tonumber(found[5]) or 0) + ${graceMs}
redis.call('HSET', row, 's', ${completed}, 'cm', now, 'ex', expires)
redis.call('HDEL', row, 'lu', 'ca')
redis.call('PEXPIREAT', row, goesAt)
redis.call('SET', outcome, answer, 'PXAT', string.format('%.0f', goesAt))
redis.call('ZREM', leases, id)
return 1`,
}

/** An answer for the whole says nothing about an effect that is in doubt: phased work needs that one settled first. */
const completeLateScript: Script = ownerScript(
  ['retentionMs', 'answer'],
  `
local settles = state == '${unknown}' and not (recovery == '${recoveryCodes.resume}' and openEffect())
if isOwner and (state == '${inProgress}' or settles) then
  if settles then noteLateOwner(ownClaim, 'happened', 1) end
  toCompleted(answer, retentionMs)
  return 1
end
-- Its own answer is there already: the reply to the first write was lost. An answer by evidence is not its own.
if isOwner and state == '${completed}' and not byEvidence then return 1 end
noteLateOwner(ownClaim, 'happened', 0)
return 0`,
)

export interface Completion {
  readonly claim: Claim
  readonly outcome: Outcome
  readonly retentionMs: number
}

export async function complete(link: Link, { claim, outcome, retentionMs }: Completion): Promise<OwnerResult> {
  const args = [...ownerArguments(claim), wholeMs(retentionMs), packOutcome(outcome, claim.fence)]
  if (numberOf(await link.run(completeInTimeScript, claim.id, args)) === 1) return 'written'
  return ownerResult(await link.run(completeLateScript, claim.id, args))
}

/** The owner gives up: nothing happened, or it is unknown what happened, or the row is parked. */
import type { Claim, Failure, OwnerResult } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import { ownerArguments, ownerResult, ownerScript } from './owner.ts'

const { pending, in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes

const failScript: Script = ownerScript(
  ['to', 'errorCode', 'dueInMs'],
  `
local isUntried = tonumber(to) == ${failedRetryable}
local verdict = isUntried and 'never-happened' or 'unknown'
if isOwner and (state == ${inProgress} or state == ${unknown} and isUntried) then
  if state == ${unknown} then noteLateOwner(ownClaim, verdict, 1) end
  more.er = errorCode
  if isUntried then
    allowAgain(nil, 0)
    toWaiting(state == ${unknown} and untried() or ${failedRetryable}, now + dueInMs)
  else
    toUnknown()
  end
  return 1
end
-- Written already: the reply was lost, or the sweeper was first.
if isOwner and state == tonumber(to) then return 1 end
if isOwner and state == ${pending} and hasSettled(ownClaim, verdict) then return 1 end
noteLateOwner(ownClaim, verdict, 0)
return 0`,
)

export async function fail(link: Link, claim: Claim, { to, errorCode, dueInMs }: Failure): Promise<OwnerResult> {
  const args = [...ownerArguments(claim), String(stateCodes[to]), errorCode, wholeMs(dueInMs)]
  return ownerResult(await link.run(failScript, claim.id, args))
}

const parkScript: Script = ownerScript(
  ['cause'],
  `
-- Parked by this owner already: the reply to the first write was lost.
if isOwner and state == ${failedRetryable} and more.pk then return 1 end
if not isOwner or state ~= ${inProgress} then return 0 end
leaveIndexes()
state, at, call, more.pk, more.er = ${failedRetryable}, now, '', now, cause
save()
redis.call('ZADD', parked, now, id)
return 1`,
)

export async function park(link: Link, claim: Claim, cause: string): Promise<OwnerResult> {
  return ownerResult(await link.run(parkScript, claim.id, [...ownerArguments(claim), cause]))
}

/** Claims whose replies were lost, released: each compared by its claim id, because its fence is not known. */
import type { LostClaim } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { numberOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import { ownerScript } from './owner.ts'
import { uuidBytes } from './packed-row.ts'

const { in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes

const releaseScript: Script = ownerScript(
  [],
  `
if claim ~= ownClaim or state ~= ${inProgress} then return 0 end
toWaiting(${failedRetryable}, now)
return 1`,
)

/** What a reconciler would apply stands in the way; evidence about an earlier generation of the row does not. */
const releaseLostScript: Script = ownerScript(
  [],
  `
if claim ~= ownClaim or recovery == ${recoveryCodes.resume} then return 0 end
if state == ${failedRetryable} then return 1 end
if state ~= ${inProgress} and state ~= ${unknown} then return 0 end
if state == ${unknown} then
  for _, entry in ipairs(allEvidence()) do
    if entry.r and (entry.v == 'happened' or entry.v == 'declined') and entry.t >= created then return 0 end
  end
  noteLateOwner(ownClaim, 'never-happened', 1)
end
toWaiting(${failedRetryable}, now)
return 1`,
)

const ofClaim = (id: string, claimId: string) => [uuidBytes(id), '', uuidBytes(claimId)]

export async function release(link: Link, id: string, claimId: string): Promise<'released' | 'not-yours'> {
  return numberOf(await link.run(releaseScript, id, ofClaim(id, claimId))) === 1 ? 'released' : 'not-yours'
}

export async function releaseMany(link: Link, claims: readonly LostClaim[]): Promise<readonly string[]> {
  const replies = await Promise.all(
    claims.map(({ id, claimId }) => link.run(releaseLostScript, id, ofClaim(id, claimId))),
  )
  return claims.filter((_, at) => replies[at] === 1).map(({ claimId }) => claimId)
}

/** A heartbeat renews the owner's lease. */
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import { ownerArgs, ownerArguments, ownerResult } from './owner.ts'
import { renewLua, rowLua } from './packed-row.ts'

const { in_progress: inProgress } = stateCodes

const heartbeatScript: Script = {
  flags: 'allow-oom',
  parts: ['row', 'leases'],
  args: [...ownerArgs, 'leaseMs'],
  body: `${rowLua}${renewLua}
if state ~= ${inProgress} or fence ~= tonumber(ownFence) or claim ~= ownClaim then return 0 end
renew(leaseMs)
return 1`,
}

export async function heartbeat(link: Link, claim: Claim, leaseMs: number): Promise<OwnerResult> {
  return ownerResult(await link.run(heartbeatScript, claim.id, [...ownerArguments(claim), wholeMs(leaseMs)]))
}

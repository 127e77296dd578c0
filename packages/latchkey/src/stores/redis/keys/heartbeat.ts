/** A heartbeat renews the owner's lease. */
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import { ownerArgs, ownerArguments, ownerResult } from './owner.ts'

const { in_progress: inProgress } = stateCodes

const heartbeatScript: Script = {
  flags: 'allow-oom',
  parts: ['row', 'leases'],
  args: [...ownerArgs, 'leaseMs'],
  body: `
local found = redis.call('HMGET', row, 's', 'f', 'c')
if found[1] ~= '${inProgress}' or found[2] ~= ownFence or found[3] ~= ownClaim then return 0 end
redis.call('HSET', row, 'lu', now + leaseMs)
redis.call('ZADD', leases, now + leaseMs, id)
return 1`,
}

export async function heartbeat(link: Link, claim: Claim, leaseMs: number): Promise<OwnerResult> {
  return ownerResult(await link.run(heartbeatScript, claim.id, [...ownerArguments(claim), wholeMs(leaseMs)]))
}

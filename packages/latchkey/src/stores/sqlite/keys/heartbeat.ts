/** A heartbeat renews the owner's lease. */
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs } from './row.ts'

const { in_progress: inProgress } = stateCodes

const heartbeatSql = `
  UPDATE latchkey_keys SET locked_until_ms = ?4
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}`

export function heartbeat(handle: Handle, claim: Claim, leaseMs: number): OwnerResult {
  const untilMs = Math.ceil(readNowMs(handle) + leaseMs)
  const written = handle.run(heartbeatSql, [claim.id, claim.fence, claim.claimId, untilMs])
  return written === 1 ? 'written' : 'claim-lost'
}

/** Taking a row out of all automatic work, and giving it back. */
import type { Act, Claim, OwnerResult, UnparkResult } from '../../../ports/store.ts'
import { unparkDetail } from '../../shared/audit-detail.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from './row.ts'
import { askAgain } from '../reconcile/look-ups.ts'
import { addAudit } from '../reconcile/evidence-and-audit.ts'

const { pending, in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes

const parkSql = `
  UPDATE latchkey_keys
  SET state = ${failedRetryable}, parked_at_ms = ?4, due_at_ms = ?4, locked_until_ms = NULL, last_error_code = ?5
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}
  RETURNING id`
const parkedByOwnerSql = `
  SELECT id FROM latchkey_keys
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${failedRetryable} AND parked_at_ms IS NOT NULL`

export function park(handle: Handle, claim: Claim, cause: string): OwnerResult {
  const owner = [claim.id, claim.fence, claim.claimId]
  if (handle.rows(parkSql, [...owner, readNowMs(handle), storable(cause)]).length === 1) return 'written'
  // Parked by this owner already: the reply to the first write was lost.
  return handle.rows(parkedByOwnerSql, owner).length === 1 ? 'written' : 'claim-lost'
}

// It may have been parked for longer than its retention, and a row that is expired counts as absent: it is kept as long
// again as it was to be kept when it was granted.
const unparkSql = `
  UPDATE latchkey_keys
  SET parked_at_ms = NULL, crashes = 0, expires_at_ms = ?2 + (expires_at_ms - created_at_ms),
      due_at_ms = CASE WHEN state IN (${pending}, ${failedRetryable}) THEN ?2 END
  WHERE id = ?1 AND parked_at_ms IS NOT NULL
  RETURNING last_error_code, fence, state`

export function unpark(handle: Handle, id: string, { by, reason }: Act): UnparkResult {
  const atMs = readNowMs(handle)
  const [row] = handle.rows(unparkSql, [id, atMs])
  if (row === undefined) {
    const found = handle.rows('SELECT id FROM latchkey_keys WHERE id = ?1', [id])
    return { kind: found.length === 1 ? 'not-parked' : 'not-found' }
  }
  if (row.state === unknown) askAgain(handle, id, atMs)
  const lastErrorCode = row.last_error_code === null ? undefined : String(row.last_error_code)
  const detail = unparkDetail({ lastErrorCode, fence: Number(row.fence) })
  addAudit(handle, id, { by, reason, act: 'unpark', atMs, detail })
  return { kind: 'unparked' }
}

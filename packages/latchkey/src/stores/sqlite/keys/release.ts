/** Claims whose replies were lost, released: one, or many in one transaction, each compared by its claim id. */
import type { LostClaim } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { addLine } from '../audit/lines.ts'
import type { Handle } from '../connection/handle.ts'
import { addEvidence } from '../reconcile/evidence-and-audit.ts'
import { readNowMs } from './row.ts'

const { in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes

const releaseSql = `
  UPDATE latchkey_keys SET state = ${failedRetryable}, due_at_ms = ?3, locked_until_ms = NULL
  WHERE id = ?1 AND claim_id = ?2 AND state = ${inProgress}
  RETURNING id`

export function release(handle: Handle, id: string, claimId: string): 'released' | 'not-yours' {
  const released = handle.rows(releaseSql, [id, claimId, readNowMs(handle)])
  if (released.length === 0) return 'not-yours'
  addLine(handle, id)
  return 'released'
}

const readSql = `
  SELECT state, fence FROM latchkey_keys WHERE id = ?1 AND claim_id = ?2 AND recovery <> ${recoveryCodes.resume}`

// What a reconciler would apply stands in the way; evidence about an earlier generation of the row does not.
const releaseLostSql = `
  UPDATE latchkey_keys SET state = ${failedRetryable}, due_at_ms = ?3, locked_until_ms = NULL, parked_at_ms = NULL
  WHERE id = ?1 AND claim_id = ?2 AND recovery <> ${recoveryCodes.resume} AND (state = ${inProgress} OR state = ${unknown}
    AND NOT EXISTS (SELECT 1 FROM latchkey_evidence AS e WHERE e.id = latchkey_keys.id AND e.ref IS NOT NULL
      AND e.verdict IN ('happened', 'declined') AND e.at_ms >= latchkey_keys.created_at_ms))`

export function releaseMany(handle: Handle, claims: readonly LostClaim[]): readonly string[] {
  const nowMs = readNowMs(handle)
  return claims.filter(claim => isOver(handle, claim, nowMs)).map(({ claimId }) => claimId)
}

function isOver(handle: Handle, { id, claimId }: LostClaim, nowMs: number): boolean {
  const [row] = handle.rows(readSql, [id, claimId])
  if (row === undefined) return false
  if (row.state === failedRetryable) return true
  if (handle.run(releaseLostSql, [id, claimId, nowMs]) === 0) return false
  addLine(handle, id)
  if (row.state === unknown) {
    const claim = { id, claimId, fence: Number(row.fence) }
    addEvidence(handle, id, { source: 'late-owner', verdict: 'never-happened', applied: true, atMs: nowMs, claim })
  }
  return true
}

/** The owner gives up: nothing happened, or it is unknown what happened, or the row is parked. */
import type { Claim, Failure, OwnerResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { addLine } from '../audit/lines.ts'
import type { Handle } from '../connection/handle.ts'
import { addEvidence, hasSettled } from '../reconcile/evidence-and-audit.ts'
import { allowAgain } from '../steps/journal.ts'
import { lateOwner, readBefore } from './owner.ts'
import { readNowMs, storable } from './row.ts'

const { pending, in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes

// Phased work that is unknown has steps behind it: it continues, where guarded work begins again.
const failSql = `
  UPDATE latchkey_keys SET
    state = CASE WHEN state = ${unknown} AND recovery = ${recoveryCodes.resume} THEN ${pending} ELSE ?4 END,
    due_at_ms = ?5, last_error_code = ?6, locked_until_ms = NULL, parked_at_ms = NULL
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3
    AND (state = ${inProgress} OR (state = ${unknown} AND ?4 = ${failedRetryable}))
  RETURNING id`

export function fail(handle: Handle, claim: Claim, { to, errorCode, dueInMs }: Failure): OwnerResult {
  const nowMs = readNowMs(handle)
  const before = readBefore(handle, claim)
  const dueAtMs = to === 'failed_retryable' ? Math.ceil(nowMs + dueInMs) : null
  const code = storable(errorCode)
  const written = handle.rows(failSql, [claim.id, claim.fence, claim.claimId, stateCodes[to], dueAtMs, code])
  const evidence = { ...lateOwner(to === 'unknown' ? 'unknown' : 'never-happened', nowMs), claim }
  if (written.length === 1) {
    addLine(handle, claim.id)
    if (to === 'failed_retryable') allowAgain(handle, claim.id, 'same-epoch')
    if (before?.state === 'unknown') addEvidence(handle, claim.id, { ...evidence, applied: true })
    return 'written'
  }
  // Written already: the reply was lost, or the sweeper was first.
  if (before?.isOwner && before.state === to) return 'written'
  if (before?.isOwner && before.state === 'pending' && hasSettled(handle, claim, evidence.verdict)) return 'written'
  addEvidence(handle, claim.id, { ...evidence, applied: false })
  return 'claim-lost'
}

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
  if (handle.rows(parkSql, [...owner, readNowMs(handle), storable(cause)]).length === 1) {
    addLine(handle, claim.id)
    return 'written'
  }
  // Parked by this owner already: the reply to the first write was lost.
  return handle.rows(parkedByOwnerSql, owner).length === 1 ? 'written' : 'claim-lost'
}

/** What the owner of a claim writes. Each write names fence AND claimId: a replaced owner matches no row. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, Evidence, Failure, OwnerResult, RowState } from '../../../ports/store.ts'
import { recoveryCodes, rowStateOf, stateCodes, stepStateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import { allowAgain } from '../steps/journal.ts'
import { readNowMs, storable } from './row.ts'
import { addEvidence, hasSettled } from '../reconcile/evidence-and-audit.ts'
import { packedOutcome } from '../../shared/packed-outcome.ts'
import { putOutcome } from './outcome.ts'

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable, unknown } = stateCodes

const heartbeatSql = `
  UPDATE latchkey_keys SET locked_until_ms = ?4
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}`

export function heartbeat(handle: Handle, claim: Claim, leaseMs: number): OwnerResult {
  const untilMs = Math.ceil(readNowMs(handle) + leaseMs)
  const written = handle.run(heartbeatSql, [claim.id, claim.fence, claim.claimId, untilMs])
  return written === 1 ? 'written' : 'claim-lost'
}

const isOwnerSql = `
  SELECT id FROM latchkey_keys WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}`

export function isOwner(handle: Handle, { id, fence, claimId }: Claim): boolean {
  return handle.rows(isOwnerSql, [id, fence, claimId]).length === 1
}

// An answer for the whole says nothing about an effect that is in doubt: phased work needs that one settled first.
const completeSql = `
  UPDATE latchkey_keys SET state = ${completed}, completed_at_ms = ?4, expires_at_ms = MAX(expires_at_ms, ?5),
         locked_until_ms = NULL, due_at_ms = NULL, parked_at_ms = NULL, outcome = ?6
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state IN (${inProgress}, ${unknown})
    AND NOT (state = ${unknown} AND recovery = ${recoveryCodes.resume}
      AND EXISTS (SELECT 1 FROM latchkey_steps AS s WHERE s.id = latchkey_keys.id AND s.state = ${stepStateCodes.open}))`

// The usual case, which leaves no doubt about what the row was before.
const completeInTimeSql = `
  UPDATE latchkey_keys SET state = ${completed}, completed_at_ms = ?4, expires_at_ms = MAX(expires_at_ms, ?5),
         locked_until_ms = NULL, outcome = ?6
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}`

export function complete(
  handle: Handle,
  claim: Claim,
  { outcome, retentionMs }: { outcome: Outcome; retentionMs: number },
): OwnerResult {
  const nowMs = readNowMs(handle)
  const keepUntilMs = Math.ceil(nowMs + retentionMs)
  const packed = packedOutcome(outcome, claim.fence)
  const values = [claim.id, claim.fence, claim.claimId, nowMs, keepUntilMs, packed ?? null]
  const inTime = handle.run(completeInTimeSql, values) === 1
  const before = inTime ? undefined : readBefore(handle, claim)
  const written = inTime || handle.run(completeSql, values) === 1
  if (written && packed === undefined) putOutcome(handle, claim, { outcome, byOwner: true })
  if (inTime) return 'written'
  const evidence = { claim, outcome, ...lateOwner('happened', nowMs) }
  if (written) {
    if (before?.state === 'unknown') addEvidence(handle, claim.id, { ...evidence, applied: true })
    return 'written'
  }
  // Its own answer is there already: the reply to the first write was lost. An answer by evidence is not its own.
  if (before?.isOwner && before.state === 'completed' && before.byOwner) return 'written'
  addEvidence(handle, claim.id, { ...evidence, applied: false })
  return 'claim-lost'
}

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

const releaseSql = `
  UPDATE latchkey_keys SET state = ${failedRetryable}, due_at_ms = ?3, locked_until_ms = NULL
  WHERE id = ?1 AND claim_id = ?2 AND state = ${inProgress}
  RETURNING id`

export function release(handle: Handle, id: string, claimId: string): 'released' | 'not-yours' {
  const released = handle.rows(releaseSql, [id, claimId, readNowMs(handle)])
  return released.length === 1 ? 'released' : 'not-yours'
}

interface RowBefore {
  readonly state: RowState
  readonly isOwner: boolean
  readonly byOwner: boolean
}

const beforeSql = `
  SELECT k.state, k.fence = ?2 AND k.claim_id = ?3 AS is_owner, k.outcome IS NOT NULL OR o.by_operator = 0 AS by_owner
  FROM latchkey_keys AS k LEFT JOIN latchkey_outcomes AS o ON o.id = k.id AND o.fence = k.fence
  WHERE k.id = ?1`

/** The row before the write, to distinguish a late answer from one in time. The write itself is guarded on its own. */
function readBefore(handle: Handle, claim: Claim): RowBefore | undefined {
  const [row] = handle.rows(beforeSql, [claim.id, claim.fence, claim.claimId])
  if (row === undefined) return undefined
  return { state: rowStateOf(Number(row.state)), isOwner: row.is_owner === 1, byOwner: row.by_owner === 1 }
}

function lateOwner(verdict: Evidence['verdict'], atMs: number) {
  return { source: 'late-owner', verdict, atMs } as const
}

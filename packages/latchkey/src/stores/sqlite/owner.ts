/** What the owner of a claim writes. Each write names fence AND claimId: a replaced owner matches no row. */
import type { Outcome } from '../../ports/outcome.ts'
import type { Claim, Evidence, Failure, OwnerResult, State } from '../../ports/store.ts'
import { stateCodes, stateOf } from '../../sql/codes.ts'
import type { Handle } from './handle.ts'
import { allowAgain } from './journal.ts'
import { putOutcome, readNowMs, storable } from './key-row.ts'
import { addEvidence } from './notes.ts'

const { in_progress: inProgress, completed, failed_retryable: failedRetryable, unknown } = stateCodes

const heartbeatSql = `
  UPDATE latchkey_keys SET locked_until_ms = ?4
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}
  RETURNING id`

export function heartbeat(handle: Handle, claim: Claim, leaseMs: number): OwnerResult {
  const untilMs = Math.ceil(readNowMs(handle) + leaseMs)
  const written = handle.rows(heartbeatSql, [claim.id, claim.fence, claim.claimId, untilMs])
  return written.length === 1 ? 'written' : 'claim-lost'
}

const isOwnerSql = `
  SELECT id FROM latchkey_keys WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}`

export function isOwner(handle: Handle, { id, fence, claimId }: Claim): boolean {
  return handle.rows(isOwnerSql, [id, fence, claimId]).length === 1
}

const completeSql = `
  UPDATE latchkey_keys SET state = ${completed}, completed_at_ms = ?4, expires_at_ms = MAX(expires_at_ms, ?5),
         locked_until_ms = NULL, due_at_ms = NULL, parked_at_ms = NULL
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state IN (${inProgress}, ${unknown})
  RETURNING id`

export function complete(
  handle: Handle,
  claim: Claim,
  { outcome, retentionMs }: { outcome: Outcome; retentionMs: number },
): OwnerResult {
  const nowMs = readNowMs(handle)
  const before = lookAt(handle, claim)
  const keepUntilMs = Math.ceil(nowMs + retentionMs)
  const written = handle.rows(completeSql, [claim.id, claim.fence, claim.claimId, nowMs, keepUntilMs])
  const evidence = { ...lateOwner('happened', nowMs), claim, outcome }
  if (written.length === 1) {
    putOutcome(handle, claim, { outcome, byOperator: false })
    if (before?.state === 'unknown') addEvidence(handle, claim.id, { ...evidence, applied: true })
    return 'written'
  }
  // Its own answer is there already: the reply to the first write was lost. An operator's answer is not its own.
  if (before?.isOwner && before.state === 'completed' && !before.byOperator) return 'written'
  addEvidence(handle, claim.id, { ...evidence, applied: false })
  return 'claim-lost'
}

const failSql = `
  UPDATE latchkey_keys SET state = ?4, due_at_ms = ?5, last_error_code = ?6, locked_until_ms = NULL, parked_at_ms = NULL
  WHERE id = ?1 AND fence = ?2 AND claim_id = ?3
    AND (state = ${inProgress} OR (state = ${unknown} AND ?4 = ${failedRetryable}))
  RETURNING id`

export function fail(handle: Handle, claim: Claim, { to, errorCode, dueInMs }: Failure): OwnerResult {
  const nowMs = readNowMs(handle)
  const before = lookAt(handle, claim)
  const dueAtMs = to === 'failed_retryable' ? Math.ceil(nowMs + dueInMs) : null
  const code = storable(errorCode)
  const written = handle.rows(failSql, [claim.id, claim.fence, claim.claimId, stateCodes[to], dueAtMs, code])
  const evidence = { ...lateOwner(to === 'unknown' ? 'unknown' : 'never-happened', nowMs), claim }
  if (written.length === 1) {
    if (to === 'failed_retryable') allowAgain(handle, claim.id, 'same-epoch')
    if (before?.state === 'unknown') addEvidence(handle, claim.id, { ...evidence, applied: true })
    return 'written'
  }
  // The same word again after a lost reply, or after the sweeper said it first.
  if (before?.isOwner && before.state === to) return 'written'
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

interface Glance {
  readonly state: State
  readonly isOwner: boolean
  readonly byOperator: boolean
}

const glanceSql = `
  SELECT k.state, k.fence = ?2 AND k.claim_id = ?3 AS is_owner, o.by_operator
  FROM latchkey_keys AS k LEFT JOIN latchkey_outcomes AS o ON o.id = k.id AND o.fence = k.fence
  WHERE k.id = ?1`

/** The row before the write, to tell a late answer from an answer in time. The write itself is guarded on its own. */
function lookAt(handle: Handle, claim: Claim): Glance | undefined {
  const [row] = handle.rows(glanceSql, [claim.id, claim.fence, claim.claimId])
  if (row === undefined) return undefined
  return { state: stateOf(Number(row.state)), isOwner: row.is_owner === 1, byOperator: row.by_operator === 1 }
}

function lateOwner(verdict: Evidence['verdict'], atMs: number) {
  return { source: 'late-owner', verdict, atMs } as const
}

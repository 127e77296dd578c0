/** The owner's answer: in time, late, or repeated. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes, stepStateCodes } from '../../shared/codes.ts'
import { packedOutcome } from '../../shared/packed-outcome.ts'
import type { Handle } from '../connection/handle.ts'
import { addEvidence } from '../reconcile/evidence-and-audit.ts'
import { putOutcome } from './outcome.ts'
import { lateOwner, readBefore } from './owner.ts'
import { readNowMs } from './row.ts'

const { in_progress: inProgress, completed, unknown } = stateCodes

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

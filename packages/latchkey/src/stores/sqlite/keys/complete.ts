/** The owner's answer: in time, alone or in a batch; late; or repeated. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes, stepStateCodes } from '../../shared/codes.ts'
import { packedOutcome } from '../../shared/packed-outcome.ts'
import { addLine } from '../audit/lines.ts'
import type { Handle } from '../connection/handle.ts'
import type { SqliteParameter } from '../driver.ts'
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

/** Fewer are done one by one. */
const manyMin = 3

/** How many the statement for many takes. Places that are left empty match no row. */
const manyMax = 16

const valuesEach = 5
const valuesMax = 1 + manyMax * valuesEach

function placeSql(place: number): string {
  const first = 2 + place * valuesEach
  return `(?${first}, ?${first + 1}, ?${first + 2}, ?${first + 3}, ?${first + 4})`
}

// A row takes 11 to 15 µs alone, where the trigger on `state` costs 4, and 7 to 8 among sixteen. CROSS: the answers first, each
// row found by the index, whatever the statistics of the file say.
export const completeManySql: string = `
  WITH done (id, fence, claim_id, keep_until_ms, outcome) AS (
    VALUES ${Array.from({ length: manyMax }, (_, place) => placeSql(place)).join(', ')}
  ), mine AS MATERIALIZED (
    SELECT k.rowid AS place, done.keep_until_ms, done.outcome
    FROM done CROSS JOIN latchkey_keys AS k ON k.id = done.id
    WHERE k.fence = done.fence AND k.claim_id = done.claim_id AND k.state = ${inProgress}
  )
  UPDATE latchkey_keys AS k SET state = ${completed}, completed_at_ms = ?1,
         expires_at_ms = MAX(k.expires_at_ms, mine.keep_until_ms), locked_until_ms = NULL, outcome = mine.outcome
  FROM mine WHERE k.rowid = mine.place`

export interface Completion {
  readonly claim: Claim
  readonly outcome: Outcome
  readonly retentionMs: number
}

export function completeMany(handle: Handle, completions: readonly Completion[]): readonly OwnerResult[] {
  // The statement for many says how many it wrote, and a line needs to know which.
  if (handle.recordsLines === true) return completions.map(each => complete(handle, each))
  const written = new Set<Completion>()
  const packed = packedOnes(completions)
  for (let from = 0; from + manyMin <= packed.length; from += manyMax) {
    const part = packed.slice(from, from + manyMax)
    if (completeTogether(handle, part) === part.length) for (const { completion } of part) written.add(completion)
  }
  // Where the count is too small, each is asked for alone: one that was written finds its own answer there.
  return completions.map(each => (written.has(each) ? 'written' : complete(handle, each)))
}

interface PackedCompletion {
  readonly completion: Completion
  readonly packed: Uint8Array
}

/** Those with an outcome that is stored with its key. Only the first of each key: an UPDATE would take any one of several. */
function packedOnes(completions: readonly Completion[]): readonly PackedCompletion[] {
  const ids = new Set<string>()
  const found: PackedCompletion[] = []
  for (const completion of completions) {
    const { claim, outcome } = completion
    if (ids.has(claim.id)) continue
    ids.add(claim.id)
    const packed = packedOutcome(outcome, claim.fence)
    if (packed !== undefined) found.push({ completion, packed })
  }
  return found
}

/** How many were in progress under their claims. */
function completeTogether(handle: Handle, part: readonly PackedCompletion[]): number {
  const nowMs = readNowMs(handle)
  const values: SqliteParameter[] = [nowMs]
  for (const { completion, packed } of part) {
    const { claim, retentionMs } = completion
    values.push(claim.id, claim.fence, claim.claimId, Math.ceil(nowMs + retentionMs), packed)
  }
  while (values.length < valuesMax) values.push(null)
  return handle.run(completeManySql, values)
}

export function complete(handle: Handle, { claim, outcome, retentionMs }: Completion): OwnerResult {
  const nowMs = readNowMs(handle)
  const keepUntilMs = Math.ceil(nowMs + retentionMs)
  const packed = packedOutcome(outcome, claim.fence)
  const values = [claim.id, claim.fence, claim.claimId, nowMs, keepUntilMs, packed ?? null]
  const inTime = handle.run(completeInTimeSql, values) === 1
  const before = inTime ? undefined : readBefore(handle, claim)
  const written = inTime || handle.run(completeSql, values) === 1
  if (written && packed === undefined) putOutcome(handle, claim, { outcome, byOwner: true })
  if (written) addLine(handle, claim.id, outcome.status)
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

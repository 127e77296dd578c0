/** Evidence is kept first, and applied if the life of its row allows it. */
import type { ApplyOptions, ApplyResult, Finding, FoundVerdict, KeepResult } from '../../../ports/reconciliation.ts'
import type { LookupClaim, Subject } from '../../../ports/reconciliation.ts'
import type { NamedEvidence } from './evidence-and-audit.ts'
import { copyOutcome, type Row } from '../row.ts'
import { settledRow, type Settlement } from './settle.ts'
import type { Tables } from '../tables.ts'

export function keep(tables: Tables, { id, effect }: Subject, finding: Finding): KeepResult {
  const { rows, notes } = tables
  const { source, ref, verdict } = finding
  // Also where there is no row: a row that begins later is not what the message is about.
  const atMs = finding.delivery ? receive(tables, finding, finding.delivery.signedAtMs) : tables.now()
  if (atMs === undefined) return { kind: 'replayed' }
  const row = rows.get(id)
  if (row === undefined || atMs < row.createdAtMs) return { kind: 'no-row' }
  const known = notes.findNamed(id, source, ref)
  if (known !== undefined && known.atMs >= row.createdAtMs) {
    return { kind: 'duplicate', evidenceId: known.evidenceId }
  }
  if (known !== undefined) notes.unname(known)
  const entry = { id, source, ref, verdict: verdict.kind, effect: effect?.name, found: copyVerdict(verdict) }
  return { kind: 'kept', evidenceId: notes.addNamed({ ...entry, atMs, applied: false }) }
}

/** When the message came for the first time; `undefined`: this delivery of it is known, so somebody recorded it. */
function receive({ received, now }: Tables, { source, ref }: Finding, signedAtMs: number): number | undefined {
  const name = JSON.stringify([source, ref])
  const known = received.get(name)
  if (known !== undefined && signedAtMs <= known.signedAtMs) return undefined
  const atMs = known?.atMs ?? now()
  received.set(name, { atMs, signedAtMs })
  return atMs
}

export function forgetDeliveries(
  { received, now }: Tables,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): number {
  const old = [...received].filter(([, { atMs }]) => atMs <= now() - olderThanMs).slice(0, limit)
  for (const [name] of old) received.delete(name)
  return old.length
}

function copyVerdict(verdict: FoundVerdict): FoundVerdict {
  return 'outcome' in verdict ? { ...verdict, outcome: copyOutcome(verdict.outcome) } : { ...verdict }
}

/** The evidence is of this life of the row and about the whole, which is all that is in doubt where no steps are kept. */
function fitting(row: Row, { atMs, effect, found }: NamedEvidence): Settlement['verdict'] | undefined {
  if (row.state !== 'unknown' || atMs < row.createdAtMs || effect !== undefined) return undefined
  return 'value' in found ? undefined : found
}

export function apply({ rows, notes, now }: Tables, evidenceId: string, options: ApplyOptions): ApplyResult {
  const evidence = notes.find(evidenceId)
  if (evidence === undefined) return { kind: 'not-applicable', state: undefined }
  if (evidence.applied) return { kind: 'applied-before' }
  const row = rows.get(evidence.id)
  if (options.lookup && !isLooking(row, options.lookup)) return { kind: 'claim-lost' }
  const verdict = row && fitting(row, evidence)
  if (row?.doubt === undefined || verdict === undefined) return { kind: 'not-applicable', state: row?.state }
  const quarantineEndMs = row.doubt.sinceMs + options.quarantineMs
  // By when it was found: what was not there within the quarantine may have come since.
  if (verdict.kind === 'never-happened' && evidence.atMs < quarantineEndMs) {
    return { kind: 'too-early', leftMs: Math.max(0, quarantineEndMs - now()) }
  }
  const settled = settledRow(row, { verdict, retentionMs: options.retentionMs }, now())
  rows.set(row.id, settled)
  notes.markApplied(evidence)
  return { kind: 'settled', to: settled.state }
}

function isLooking(row: Row | undefined, { id, fence, look }: LookupClaim): boolean {
  return row?.id === id && row.fence === fence && row.doubt?.look === look
}

export function waiting(
  { rows, notes }: Tables,
  { limit }: { limit: number },
): readonly { evidenceId: string; operation: string }[] {
  return [...rows.values()]
    .filter(row => row.state === 'unknown')
    .flatMap(row => notes.namedOf(row.id).map(evidence => ({ row, evidence })))
    .filter(({ row, evidence }) => !evidence.applied && evidence.verdict !== 'never-happened' && fitting(row, evidence))
    .sort((left, right) => Number(left.evidence.evidenceId) - Number(right.evidence.evidenceId))
    .slice(0, limit)
    .map(({ row, evidence }) => ({ evidenceId: evidence.evidenceId, operation: row.operation }))
}

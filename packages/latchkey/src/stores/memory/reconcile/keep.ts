/** Evidence and messages, written down before anything follows from them. */
import type { Finding, FoundVerdict, KeepResult, Subject } from '../../../ports/reconciliation.ts'
import { copyOutcome } from '../keys/row.ts'
import type { Tables } from '../tables.ts'

export function keep(tables: Tables, { id, effect }: Subject, finding: Finding): KeepResult {
  const { rows, log } = tables
  const { source, ref, verdict } = finding
  // Also where there is no row: a row that begins later is not what the message is about.
  const atMs = finding.delivery ? receive(tables, finding, finding.delivery.signedAtMs) : tables.now()
  if (atMs === undefined) return { kind: 'replayed' }
  const row = rows.get(id)
  if (row === undefined || atMs < row.createdAtMs) return { kind: 'no-row' }
  const known = log.findNamed(id, source, ref)
  if (known !== undefined && known.atMs >= row.createdAtMs) {
    return { kind: 'duplicate', evidenceId: known.evidenceId }
  }
  // Evidence about an earlier generation of the row was about something else, whatever its name.
  if (known !== undefined) log.unname(known)
  const about = { id, source, ref, verdict: verdict.kind, effect: effect?.name, effectRef: effect }
  return { kind: 'kept', evidenceId: log.addNamed({ ...about, found: copyVerdict(verdict), atMs, applied: false }) }
}

/** When the message came for the first time; `undefined`: this delivery is known, so it was recorded and sent again. */
function receive({ received, now }: Tables, { source, ref }: Finding, signedAtMs: number): number | undefined {
  const name = JSON.stringify([source, ref])
  const known = received.get(name)
  if (known !== undefined && signedAtMs <= known.signedAtMs) return undefined
  const atMs = known?.atMs ?? now()
  received.set(name, { atMs, signedAtMs })
  return atMs
}

function copyVerdict(verdict: FoundVerdict): FoundVerdict {
  return 'outcome' in verdict ? { ...verdict, outcome: copyOutcome(verdict.outcome) } : { ...verdict }
}

export function forgetDeliveries(
  { received, now }: Tables,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): number {
  const old = [...received].filter(([, { atMs }]) => atMs <= now() - olderThanMs).slice(0, limit)
  for (const [name] of old) received.delete(name)
  return old.length
}

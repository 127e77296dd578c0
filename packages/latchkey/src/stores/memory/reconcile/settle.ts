/** An unknown row ends: by evidence that is kept, or by a person's word. */
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import type { Act, SettleResult } from '../../../ports/store.ts'
import { completedRow, type Row, untriedRow } from '../keys/row.ts'
import { allowAgain, finishEffect, openEffect, raiseEpoch } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'

export type SettledTo = 'completed' | 'failed_retryable' | 'pending'

interface Settlement {
  readonly verdict: FoundVerdict
  readonly retentionMs: number
}

/** The caller has seen that the row is unknown and that the verdict is of the kind it needs. */
export function settleUnknown(tables: Tables, row: Row, { verdict, retentionMs }: Settlement): SettledTo {
  const nowMs = tables.now()
  const effect = openEffect(tables, row)
  if ('outcome' in verdict) {
    tables.rows.set(row.id, completedRow(row, { outcome: verdict.outcome, retentionMs, by: 'evidence' }, nowMs))
    return 'completed'
  }
  const settled = { ...untriedRow(row, nowMs), expiresAtMs: Math.max(row.expiresAtMs, nowMs + retentionMs) }
  tables.rows.set(row.id, settled)
  if (effect !== undefined && 'value' in verdict) {
    finishEffect(tables, row.id, { position: effect.position, value: verdict.value })
  }
  if (effect !== undefined && verdict.kind === 'never-happened') raiseEpoch(tables, row.id, effect.position)
  return settled.state
}

export function settle(
  tables: Tables,
  id: string,
  { verdict, act, retentionMs }: { verdict: FoundVerdict; act: Act; retentionMs: number },
): SettleResult {
  const { rows, log, now } = tables
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (row.state !== 'unknown') return { kind: 'wrong-state', state: row.state }
  const effect = openEffect(tables, row)
  const needs = effect === undefined ? 'outcome' : 'value'
  if (verdict.kind !== 'never-happened' && !(needs in verdict)) {
    return { kind: 'wrong-verdict', needs, effect: effect?.name }
  }
  settleUnknown(tables, row, { verdict, retentionMs })
  // A person speaks about the whole row, whatever else of it is open.
  if (verdict.kind === 'never-happened') allowAgain(tables, id, 'next-epoch')
  const atMs = now()
  log.addEvidence(id, { source: 'operator', verdict: verdict.kind, effect: effect?.name, applied: true, atMs })
  log.addAudit(row, { by: act.by, reason: act.reason, act: 'settle', atMs, detail: verdict.kind })
  return { kind: 'settled' }
}

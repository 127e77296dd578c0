/** An unknown row ends. No steps are kept here, so no effect is ever open: a verdict is about the whole. */
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import type { Act, SettleResult } from '../../../ports/store.ts'
import { completedRow, type Row } from '../row.ts'
import type { Tables } from '../tables.ts'

export type SettledTo = 'completed' | 'failed_retryable' | 'pending'

export interface Settlement {
  readonly verdict: Exclude<FoundVerdict, { readonly value: unknown }>
  readonly retentionMs: number
}

export function settledRow(row: Row, { verdict, retentionMs }: Settlement, nowMs: number): Row & { state: SettledTo } {
  if (verdict.kind !== 'never-happened') {
    return {
      ...completedRow(row, { outcome: verdict.outcome, retentionMs, by: 'evidence' }, nowMs),
      state: 'completed',
    }
  }
  const expiresAtMs = Math.max(row.expiresAtMs, nowMs + retentionMs)
  return { ...backAgain(row, nowMs), expiresAtMs }
}

/** Proven: nothing happened. */
export function backAgain(row: Row, dueAtMs: number): Row & { state: 'pending' | 'failed_retryable' } {
  const state = row.recovery === 'resume' ? 'pending' : 'failed_retryable'
  return { ...row, state, dueAtMs, parked: false, doubt: undefined }
}

export function settle(
  { rows, notes, now }: Tables,
  id: string,
  { verdict, act, retentionMs }: { verdict: FoundVerdict; act: Act; retentionMs: number },
): SettleResult {
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (row.state !== 'unknown') return { kind: 'wrong-state', state: row.state }
  if ('value' in verdict) return { kind: 'wrong-verdict', needs: 'outcome', effect: undefined }
  const atMs = now()
  rows.set(id, settledRow(row, { verdict, retentionMs }, atMs))
  notes.addEvidence(id, { source: 'operator', verdict: verdict.kind, effect: undefined, applied: true, atMs })
  notes.addAudit(id, { by: act.by, reason: act.reason, act: 'settle', atMs, detail: verdict.kind })
  return { kind: 'settled' }
}

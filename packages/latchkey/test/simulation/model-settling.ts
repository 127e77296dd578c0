/** Into `unknown`, and out of it: by evidence that was kept, or by a person's word. */
import type { Actor } from '../../src/engine/rules/transitions.ts'
import type { ApplyOptions, ApplyResult, FoundVerdict } from '../../src/ports/reconciliation.ts'
import type { SettleResult } from '../../src/ports/store.ts'
import { isUnderLook } from './model-lookups.ts'
import type { Named, Notes } from './model-evidence.ts'
import { type ModelRow, type ModelStep, openEffect } from './model-row.ts'
import type { AppliedEvidence, Tables } from './model-tables.ts'

export function unknownRow(row: ModelRow, nowMs: number): ModelRow {
  const doubt = { sinceMs: nowMs, look: 0, tries: 0, lookUpAtMs: undefined, looking: false }
  return { ...row, state: 'unknown', doubt, saidBy: undefined }
}

/** Proven: nothing happened. */
export function backAgain(row: ModelRow, { dueAtMs, epochs }: { dueAtMs: number; epochs: 0 | 1 }): ModelRow {
  const state = row.recovery === 'resume' ? 'pending' : 'failed_retryable'
  const again = (step: ModelStep): ModelStep =>
    step.state === 'open' ? { ...step, state: 'again', epoch: step.epoch + epochs } : step
  return { ...row, state, dueAtMs, parked: false, doubt: undefined, saidBy: 'evidence', steps: row.steps.map(again) }
}

export function settling(tables: Tables, { find, note, mark }: Notes) {
  const { rows, now, put, completed } = tables

  function settled(row: ModelRow, verdict: FoundVerdict, retentionMs: number): ModelRow {
    const kept = { ...row, expiresAtMs: Math.max(row.expiresAtMs, now() + retentionMs) }
    if (verdict.kind === 'never-happened') return backAgain(kept, { dueAtMs: now(), epochs: 1 })
    if ('outcome' in verdict) return { ...completed(kept, verdict.outcome, retentionMs), saidBy: 'evidence' }
    const open = openEffect(row)
    const steps = kept.steps.map(step =>
      step === open ? { ...step, state: 'done' as const, result: verdict.value } : step,
    )
    return { ...kept, state: 'pending', dueAtMs: now(), parked: false, doubt: undefined, saidBy: 'evidence', steps }
  }

  function leave(row: ModelRow, { by, evidence, retentionMs }: Leaving): ModelRow {
    const after = settled(row, evidence.verdict, retentionMs)
    const what = by === 'operator' ? 'settle' : `apply ${evidence.source}`
    put(row.identity.id, after, by, { what: `${what} ${evidence.verdict.kind}`, evidence })
    return after
  }

  return {
    apply(evidenceId: string, { quarantineMs, retentionMs, lookup }: ApplyOptions): ApplyResult {
      const evidence = find(evidenceId)
      if (evidence === undefined) return { kind: 'not-applicable', state: undefined }
      if (evidence.applied) return { kind: 'applied-before' }
      const row = rows.get(evidence.subject.id)
      if (lookup !== undefined && !(row !== undefined && isUnderLook(row, lookup))) return { kind: 'claim-lost' }
      if (row?.doubt === undefined || !fits(row, evidence)) return { kind: 'not-applicable', state: row?.state }
      const endMs = row.doubt.sinceMs + quarantineMs
      if (evidence.verdict.kind === 'never-happened' && evidence.atMs < endMs) {
        return { kind: 'too-early', leftMs: Math.max(0, endMs - now()) }
      }
      mark(evidence)
      const by = evidence.source === 'late-owner' ? 'late owner' : 'reconciler'
      const { state } = leave(row, { by, evidence, retentionMs })
      return { kind: 'settled', to: state === 'completed' || state === 'pending' ? state : 'failed_retryable' }
    },
    settle(id: string, verdict: FoundVerdict, retentionMs: number): SettleResult {
      const row = rows.get(id)
      if (row?.state !== 'unknown') {
        return row === undefined ? { kind: 'not-found' } : { kind: 'wrong-state', state: row.state }
      }
      const open = openEffect(row)
      const needs = open === undefined ? 'outcome' : 'value'
      if (verdict.kind !== 'never-happened' && !(needs in verdict)) {
        return { kind: 'wrong-verdict', needs, effect: open?.name }
      }
      const evidence = { source: 'operator', verdict, atMs: now() } as const
      note(id, { ...evidence, applied: true })
      leave(row, { by: 'operator', evidence, retentionMs })
      return { kind: 'settled' }
    },
    unpark(id: string): void {
      const row = rows.get(id)
      if (row === undefined || !row.parked) return
      const expiresAtMs = Math.max(row.expiresAtMs, now() + row.expiresAtMs - row.createdAtMs)
      const doubt = row.doubt && { ...row.doubt, tries: 0, looking: false, lookUpAtMs: now() }
      put(id, { ...row, parked: false, crashes: 0, dueAtMs: now(), expiresAtMs, doubt }, 'operator', 'unpark')
    },
  }
}

interface Leaving {
  readonly by: Actor
  readonly evidence: AppliedEvidence
  readonly retentionMs: number
}

/** Of this life of the row, about what is in doubt there, and of the kind that it needs. */
export function fits(row: ModelRow, { subject, verdict, atMs }: Named): boolean {
  if (row.state !== 'unknown' || atMs < row.createdAtMs) return false
  const open = openEffect(row)
  if (open === undefined) return subject.effect === undefined && !('value' in verdict)
  const { position, epoch } = subject.effect ?? {}
  return position === open.position && epoch === open.epoch && !('outcome' in verdict)
}

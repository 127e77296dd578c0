/** Evidence is stored first and then applied. Evidence that contradicts an earlier settlement is stored and reported. */
import { storableVerdict } from '../engine/operator.ts'
import type { ApplyResult, Finding, KeepResult, LookupClaim, Subject } from '../ports/reconciliation.ts'
import type { ReconcilerContext } from './host.ts'

export interface PresentedEvidence {
  readonly operation: string
  readonly subject: Subject
  readonly finding: Finding
  /** How long ago it was found: a "never happened" counts from then, not from when it is applied. */
  readonly ageMs: () => number
  readonly lookup?: LookupClaim
}

export type PresentResult =
  | Exclude<KeepResult, { kind: 'kept' | 'duplicate' }>
  | (ApplyResult & { readonly keptBefore: boolean })

export async function present(context: ReconcilerContext, evidence: PresentedEvidence): Promise<PresentResult> {
  const { store, call, quarantineMs, retentionOf } = context
  const { operation, subject, ageMs, lookup } = evidence
  const verdict = storableVerdict(evidence.finding.verdict, retentionOf(operation).sensitive)
  const finding = { ...evidence.finding, verdict }
  const kept = await call('keep evidence', () => store.reconciliation.keep(subject, finding))
  if (kept.kind === 'replayed' || kept.kind === 'no-row') return kept
  const options = {
    // Asked after it was stored: the store compares the time of storing, which may be long after the finding.
    quarantineMs: quarantineMs(operation) + ageMs(),
    retentionMs: retentionOf(operation).retentionMs,
    ...(lookup === undefined ? {} : { lookup }),
  }
  const applied = await call('apply evidence', () => store.reconciliation.apply(kept.evidenceId, options))
  if (applied.kind === 'settled') {
    reportSettled(context, { operation, id: subject.id, to: applied.to, source: finding.source })
  } else if (kept.kind === 'kept' && (applied.kind === 'not-applicable' || applied.kind === 'claim-lost')) {
    await reportUnusable(context, evidence, applied.kind === 'claim-lost' ? undefined : applied.state)
  }
  return { ...applied, keptBefore: kept.kind === 'duplicate' }
}

export function reportSettled(context: ReconcilerContext, settled: Parameters<ReconcilerContext['settled']>[0]): void {
  const { operation, id, source } = settled
  const identity = id === undefined ? {} : { identity: id }
  context.telemetry.count('reconcile.resolved', { operation, ...identity, detail: source })
  context.settled(settled)
}

async function reportUnusable(
  context: ReconcilerContext,
  { operation, subject, finding }: PresentedEvidence,
  state: string | undefined,
): Promise<void> {
  if (finding.verdict.kind === 'never-happened') return
  const attributes = { operation, identity: subject.id }
  if (await contradicts(context, subject)) {
    context.telemetry.count('reconcile.failed', { ...attributes, detail: 'contradiction' })
    const message = `${finding.source} reports that it happened, after evidence that it never did: it may have happened twice; manual review needed`
    context.telemetry.report(message, { ...attributes, detail: 'contradiction' })
  } else if (state === 'unknown') {
    const effect = subject.effect === undefined ? '' : `effect ${subject.effect.name}, epoch ${subject.effect.epoch}: `
    const what = 'value' in finding.verdict ? 'an effect value' : 'an outcome'
    const message = `${finding.source} gave ${what}, which does not fit the row: it is stored and settles nothing`
    context.telemetry.report(message, { ...attributes, detail: `${effect}${finding.verdict.kind}` })
  }
}

/** Whether the effect's epoch was abandoned, or a guarded row was settled before as never happened. */
async function contradicts({ store, call }: ReconcilerContext, { id, effect }: Subject): Promise<boolean> {
  if (effect !== undefined) {
    const journal = await call('read journal', async () => store.steps?.readJournal(id))
    return journal?.steps?.some(step => step.position === effect.position && step.epoch > effect.epoch) ?? false
  }
  const { evidence } = await call('inspect', () => store.inspect(id))
  return evidence.some(one => one.applied && one.verdict === 'never-happened' && one.effect === undefined)
}

/** Applies evidence that was stored before its row became unknown, or before a crash. Returns whether there may be more. */
export async function applyKept(context: ReconcilerContext, limit: number): Promise<boolean> {
  const { store, call, quarantineMs, retentionOf } = context
  const waiting = await call('kept evidence', () => store.reconciliation.waiting({ limit }))
  let settled = 0
  for (const { evidenceId, operation } of waiting) {
    const options = { quarantineMs: quarantineMs(operation), retentionMs: retentionOf(operation).retentionMs }
    const applied = await call('apply evidence', () => store.reconciliation.apply(evidenceId, options))
    if (applied.kind !== 'settled') continue
    settled += 1
    reportSettled(context, { operation, id: undefined, to: applied.to, source: 'kept' })
  }
  return waiting.length >= limit && settled > 0
}

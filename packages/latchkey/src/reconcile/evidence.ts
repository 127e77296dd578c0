/** Evidence is kept first and applied then; what contradicts an earlier settlement is kept, and said aloud. */
import type { ApplyResult, Finding, KeepResult, LookupClaim, Subject } from '../ports/reconciliation.ts'
import type { Parts } from './host.ts'

export interface Presentation {
  readonly operation: string
  readonly subject: Subject
  readonly finding: Finding
  /** How long ago it was found: a "never happened" counts from then, not from when it is applied. */
  readonly ageMs: number
  readonly lookup?: LookupClaim
}

export type Presented =
  | Exclude<KeepResult, { kind: 'kept' | 'duplicate' }>
  | (ApplyResult & { readonly keptBefore: boolean })

export async function present(parts: Parts, presentation: Presentation): Promise<Presented> {
  const { store, call, quarantineMs, keeping } = parts
  const { operation, subject, finding, ageMs, lookup } = presentation
  const kept = await call('keep evidence', () => store.reconciliation.keep(subject, finding))
  if (kept.kind === 'replayed' || kept.kind === 'no-row') return kept
  const options = {
    quarantineMs: quarantineMs(operation) + ageMs,
    retentionMs: keeping(operation).retentionMs,
    ...(lookup === undefined ? {} : { lookup }),
  }
  const applied = await call('apply evidence', () => store.reconciliation.apply(kept.evidenceId, options))
  if (applied.kind === 'settled') {
    tellSettled(parts, { operation, id: subject.id, to: applied.to, source: finding.source })
  } else if (kept.kind === 'kept' && (applied.kind === 'not-applicable' || applied.kind === 'claim-lost')) {
    await tellUnfit(parts, presentation, applied.kind === 'claim-lost' ? undefined : applied.state)
  }
  return { ...applied, keptBefore: kept.kind === 'duplicate' }
}

export function tellSettled(parts: Parts, settled: Parameters<Parts['settled']>[0]): void {
  const { operation, id, source } = settled
  const identity = id === undefined ? {} : { identity: id }
  parts.telemetry.count('reconcile.resolved', { operation, ...identity, detail: source })
  parts.settled(settled)
}

async function tellUnfit(
  parts: Parts,
  { operation, subject, finding }: Presentation,
  state: string | undefined,
): Promise<void> {
  if (finding.verdict.kind === 'never-happened') return
  const attributes = { operation, identity: subject.id }
  if (await contradicts(parts, subject)) {
    parts.telemetry.count('reconcile.failed', { ...attributes, detail: 'contradiction' })
    const message = `${finding.source} says that it happened, after evidence said that it never did: it may have happened twice. A person has to look`
    parts.telemetry.report(message, { ...attributes, detail: 'contradiction' })
  } else if (state === 'unknown') {
    const effect = subject.effect === undefined ? '' : `effect ${subject.effect.name}, epoch ${subject.effect.epoch}: `
    const what = 'value' in finding.verdict ? 'value of an effect' : 'outcome of the whole'
    const message = `${finding.source} gave the ${what}, which does not fit the row: it is kept, and settles nothing`
    parts.telemetry.report(message, { ...attributes, detail: `${effect}${finding.verdict.kind}` })
  }
}

/** The epoch of the effect was given up; or, of guarded work, the row was settled as never happened before. */
async function contradicts({ store, call }: Parts, { id, effect }: Subject): Promise<boolean> {
  if (effect !== undefined) {
    const journal = await call('read journal', async () => store.steps?.readJournal(id))
    return journal?.steps?.some(step => step.position === effect.position && step.epoch > effect.epoch) ?? false
  }
  const { evidence } = await call('inspect', () => store.inspect(id))
  return evidence.some(one => one.applied && one.verdict === 'never-happened' && one.effect === undefined)
}

/** What was kept before its row became unknown, or before a crash, is used now. Says whether there may be more. */
export async function applyKept(parts: Parts, limit: number): Promise<boolean> {
  const { store, call, quarantineMs, keeping } = parts
  const waiting = await call('kept evidence', () => store.reconciliation.waiting({ limit }))
  let settled = 0
  for (const { evidenceId, operation } of waiting) {
    const options = { quarantineMs: quarantineMs(operation), retentionMs: keeping(operation).retentionMs }
    const applied = await call('apply evidence', () => store.reconciliation.apply(evidenceId, options))
    if (applied.kind !== 'settled') continue
    settled += 1
    tellSettled(parts, { operation, id: undefined, to: applied.to, source: 'kept' })
  }
  return waiting.length >= limit && settled > 0
}

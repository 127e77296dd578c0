/** One comparison of two ledgers: differences are counted, and what a pair proves about an unknown row becomes evidence. */
import { createHash } from 'node:crypto'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { LatchkeyError, misconfigured } from '../../ports/errors.ts'
import { callable, durationUpTo } from '../../ports/option-kinds.ts'
import type { FoundVerdict, LedgerCounts, LedgerRun } from '../../ports/reconciliation.ts'
import { present } from '../evidence.ts'
import { type LedgerEntry, type LedgerPair, mergeLedgers } from './merge.ts'
import type { ReconcilerContext } from '../host.ts'
import { findSubject, type FoundSubject } from '../find-subject.ts'
import { type EvidenceInput, provenVerdict } from '../verdict.ts'

export interface LedgerOptions<Ours, Theirs> {
  /** How often the workers compare, whatever the number of processes. `compare` compares at once. */
  readonly everyMs: number
  /** Our entries, in ascending order of their keys' code units, each key once. Read them in pages: one entry is held at a time. */
  readonly ours: (signal: AbortSignal) => AsyncIterable<LedgerEntry<Ours>>
  /** The provider's entries, in the same order, as of the start of the comparison or later. */
  readonly theirs: (signal: AbortSignal) => AsyncIterable<LedgerEntry<Theirs>>
  readonly same: (ours: Ours, theirs: Theirs) => boolean
  /**
   * What a pair of entries proves about a row. Return undefined for rows that are not in doubt. A `never-happened` counts at the end of the
   * comparison, for rows that became unknown at least one quarantine before it started.
   */
  readonly prove?: (pair: LedgerPair<Ours, Theirs>) => EvidenceInput | undefined | Promise<EvidenceInput | undefined>
  /** Called at the end of every comparison, with the differences. */
  readonly report?: (report: LedgerReport) => void | Promise<void>
}

const ledgerChecks: ChecksOf<LedgerOptions<never, never>> = {
  everyMs: durationUpTo(366 * 24 * 3_600_000, 'a year'),
  ours: callable,
  theirs: callable,
  same: callable,
  prove: callable,
  report: callable,
}

export interface LedgerReport extends LedgerCounts {
  readonly name: string
  readonly tookMs: number
  /** The first 100 differences. */
  readonly examples: readonly LedgerPair<unknown, unknown>[]
}

export interface NamedLedger extends LedgerOptions<never, never> {
  readonly name: string
}

/** Enough to find the cause; the counts are complete. */
const examplesMax = 100
/** Held until both sides have ended in order. The next comparison finds the rest. */
const negativesMax = 1_000

export interface Comparison {
  readonly ledger: NamedLedger
  readonly run: LedgerRun
  /** Aborted when another process took over the run, or the worker stops. */
  readonly signal: AbortSignal
}

export async function compareLedgers(
  context: ReconcilerContext,
  { ledger, run, signal }: Comparison,
): Promise<LedgerReport> {
  const { clock } = context
  const beganAtMs = clock.monotonicMs()
  const counts = { compared: 0, missing: 0, extra: 0, different: 0, settled: 0 }
  const examples: LedgerPair<unknown, unknown>[] = []
  const negatives: Proof[] = []
  const { same, prove } = ledger
  const merging = { ours: ledger.ours(signal), theirs: ledger.theirs(signal), same, clock, signal }
  for await (const pair of mergeLedgers<never, never>(merging)) {
    counts.compared += 1
    if (pair.kind !== 'same') {
      counts[pair.kind] += 1
      if (examples.length < examplesMax) examples.push(pair)
    }
    const evidence = await prove?.(pair)
    if (evidence === undefined) continue
    const proof = checkedProof(context, { ledger, run, key: pair.key, evidence })
    // A later entry out of order may have this key: absence is proven only when both sides have ended.
    if (proof.negative) negatives.push(...(negatives.length < negativesMax ? [proof] : []))
    else if (await presentProof(context, proof, beganAtMs)) counts.settled += 1
  }
  for (const proof of negatives) {
    signal.throwIfAborted()
    if (await presentProof(context, proof, beganAtMs)) counts.settled += 1
  }
  return { name: ledger.name, tookMs: clock.monotonicMs() - beganAtMs, examples, ...counts }
}

interface Proof {
  readonly evidence: EvidenceInput
  readonly negative: boolean
  readonly verdict: (operation: string) => FoundVerdict
  /** Unique to this comparison, and common to this entry in all comparisons. */
  readonly refs: { readonly once: string; readonly always: string }
}

interface UncheckedProof {
  readonly ledger: NamedLedger
  readonly run: LedgerRun
  readonly key: string
  readonly evidence: EvidenceInput
}

function checkedProof(context: ReconcilerContext, { ledger: { name }, run, key, evidence }: UncheckedProof): Proof {
  const what = `the verdict that the ledger ${name} proves`
  const short = key.length > 64 ? createHash('sha256').update(key).digest('base64url') : key
  return {
    evidence,
    negative: provenVerdict(what, evidence.verdict, 0).kind === 'never-happened',
    verdict: operation => provenVerdict(what, evidence.verdict, context.retentionOf(operation).outcomeVersion),
    refs: { once: `${name}:${run.run}:${short}`, always: `${name}:${short}` },
  }
}

/** Returns whether it settled the row. */
async function presentProof(context: ReconcilerContext, proof: Proof, beganAtMs: number): Promise<boolean> {
  const found = await findSubject(context, proof.evidence)
  if (found === undefined) {
    context.telemetry.count('reconcile.refused', { detail: 'ledger: no-row' })
    return false
  }
  const ref = refOf(proof, found)
  if (ref === undefined) return false
  const { subject, operation } = found
  const finding = { source: 'ledger', ref, verdict: proof.verdict(operation) } as const
  const ageMs = () => context.clock.monotonicMs() - beganAtMs
  const presented = await present(context, { subject, operation, finding, ageMs })
  // A turn of the reconciler may apply it as soon as it is stored.
  return presented.kind === 'settled' || (presented.kind === 'applied-before' && !presented.keptBefore)
}

/** A row that is not unknown gets positive evidence once, however many comparisons find it, and no negative evidence. */
function refOf({ negative, refs }: Proof, { state }: FoundSubject): string | undefined {
  if (state === 'unknown') return refs.once
  return negative ? undefined : refs.always
}

export function checkedLedger(name: string, options: LedgerOptions<never, never>): NamedLedger {
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw misconfigured(
      `ledger: the name must be 1 to 64 letters, digits, '.', '_' or '-' (got ${JSON.stringify(name)})`,
    )
  }
  checkOptions(`ledger ${name}`, options, ledgerChecks)
  for (const option of ['everyMs', 'ours', 'theirs', 'same'] as const) {
    if (options[option] === undefined)
      throw misconfigured(`ledger ${name} needs ${option}: ${ledgerChecks[option].wants}`)
  }
  return { name, ...options }
}

export function underWay(name: string, inMs: number): LatchkeyError {
  return new LatchkeyError('in-progress', `another comparison of the ledger ${name} is in progress`, {
    retryAfterMs: inMs,
  })
}

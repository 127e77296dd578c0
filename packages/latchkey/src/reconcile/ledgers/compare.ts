/** One comparison of two ledgers: what differs is counted, what it proves about unknown rows is evidence. */
import { createHash } from 'node:crypto'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { LatchkeyError, misconfigured } from '../../ports/errors.ts'
import { callable, durationUpTo } from '../../ports/option-kinds.ts'
import type { FoundVerdict, LedgerCounts, LedgerRun } from '../../ports/reconciliation.ts'
import { present } from '../evidence.ts'
import { type LedgerEntry, type LedgerPair, mergeLedgers } from './merge.ts'
import type { Parts } from '../host.ts'
import { findSubject, type FoundSubject } from '../subject.ts'
import { checkedVerdict, type Statement } from '../verdict.ts'

export interface LedgerOptions<Ours, Theirs> {
  /** How often it is compared, by one of however many processes. The workers do it; `compare` does it by hand. */
  readonly everyMs: number
  /** Our entries, in ascending order of their keys' code units, each key once. In pages: one entry is held at a time. */
  readonly ours: (signal: AbortSignal) => AsyncIterable<LedgerEntry<Ours>>
  /** The provider's entries, in the same order. Read what it had when the comparison began, or later. */
  readonly theirs: (signal: AbortSignal) => AsyncIterable<LedgerEntry<Theirs>>
  readonly same: (ours: Ours, theirs: Theirs) => boolean
  /**
   * What a pair of entries proves about a row. Return undefined for rows that are not in doubt. A `never-happened` counts at the end of the
   * comparison, for rows that became unknown a quarantine before it began.
   */
  readonly prove?: (pair: LedgerPair<Ours, Theirs>) => Statement | undefined | Promise<Statement | undefined>
  /** Called at the end of every comparison, with what differs. */
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
  /** Of what differs, the first 100. */
  readonly examples: readonly LedgerPair<unknown, unknown>[]
}

export interface NamedLedger extends LedgerOptions<never, never> {
  readonly name: string
}

/** Enough to see what is wrong; the counts are complete. */
const examplesMax = 100
/** Held until both sides have kept their order to the end. What is more than this is found by the next comparison. */
const negativesMax = 1_000

export interface Comparing {
  readonly ledger: NamedLedger
  readonly run: LedgerRun
  /** Aborted when the run was lost to another process, or is to end. */
  readonly signal: AbortSignal
}

export async function compareLedgers(parts: Parts, { ledger, run, signal }: Comparing): Promise<LedgerReport> {
  const { clock } = parts
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
    const said = await prove?.(pair)
    if (said === undefined) continue
    const proof = checkedProof(parts, { ledger, run, key: pair.key, said })
    // A key that comes out of order later may be this one: absence is proven when both sides have ended.
    if (proof.negative) negatives.push(...(negatives.length < negativesMax ? [proof] : []))
    else if (await presentProof(parts, proof, beganAtMs)) counts.settled += 1
  }
  for (const proof of negatives) {
    signal.throwIfAborted()
    if (await presentProof(parts, proof, beganAtMs)) counts.settled += 1
  }
  return { name: ledger.name, tookMs: clock.monotonicMs() - beganAtMs, examples, ...counts }
}

interface Proof {
  readonly said: Statement
  readonly negative: boolean
  readonly verdict: (operation: string) => FoundVerdict
  /** Of this comparison, and of this entry in all of them. */
  readonly refs: { readonly once: string; readonly always: string }
}

interface Proving {
  readonly ledger: NamedLedger
  readonly run: LedgerRun
  readonly key: string
  readonly said: Statement
}

function checkedProof(parts: Parts, { ledger: { name }, run, key, said }: Proving): Proof {
  const what = `the verdict that the ledger ${name} proves`
  const check = (outcomeVersion: number) => {
    const verdict = checkedVerdict(what, said.verdict, outcomeVersion)
    if (verdict !== 'still-unknown') return verdict
    throw misconfigured(`${what} is still-unknown: return undefined where a pair proves nothing`)
  }
  const short = key.length > 64 ? createHash('sha256').update(key).digest('base64url') : key
  return {
    said,
    negative: check(0).kind === 'never-happened',
    verdict: operation => check(parts.keeping(operation).outcomeVersion),
    refs: { once: `${name}:${run.run}:${short}`, always: `${name}:${short}` },
  }
}

/** Says whether it settled the row. */
async function presentProof(parts: Parts, proof: Proof, beganAtMs: number): Promise<boolean> {
  const found = await findSubject(parts, proof.said)
  if (found === undefined) {
    parts.telemetry.count('reconcile.refused', { detail: 'ledger: no-row' })
    return false
  }
  const ref = refOf(proof, found)
  if (ref === undefined) return false
  const { subject, operation } = found
  const finding = { source: 'ledger', ref, verdict: proof.verdict(operation) } as const
  const ageMs = parts.clock.monotonicMs() - beganAtMs
  const presented = await present(parts, { subject, operation, finding, ageMs })
  // A turn of the reconciler may find it between being kept and being applied.
  return presented.kind === 'settled' || (presented.kind === 'applied-before' && !presented.keptBefore)
}

/** A row that is not in doubt gets positive evidence once, however many comparisons find it, and no negative. */
function refOf({ negative, refs }: Proof, { state }: FoundSubject): string | undefined {
  if (state === 'unknown') return refs.once
  return negative ? undefined : refs.always
}

export function checkedLedger(name: string, options: LedgerOptions<never, never>): NamedLedger {
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw misconfigured(
      `ledger: the name must be 1 to 64 letters, digits, '.', '_' or '-', and is ${JSON.stringify(name)}`,
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
  return new LatchkeyError('in-progress', `the ledger ${name} is being compared by somebody else: wait for it`, {
    retryAfterMs: inMs,
  })
}

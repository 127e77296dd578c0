/**
 * How an unknown is settled.
 *
 * Evidence is stored first, whatever the state of its row, and then applied, if that state allows it. Both may be
 * repeated: evidence that was stored before a crash is found by `waiting` and applied after it.
 *
 * A look-up is a question to the provider about one unknown row, asked by one process at a time: `look` rises with every grant
 * and fences it, as `fence` does for claims. The key's own fence stays, so that a late owner can still report.
 */
import type { Outcome } from './outcome.ts'
import type { Identity, OwnerResult, RowState } from './store.ts'

export type EvidenceSource = 'webhook' | 'look-up' | 'ledger' | 'late-owner' | 'operator'

/** `declined`: it was attempted and refused for good, which is an answer; `unknown`: the source could not tell. */
export type EvidenceVerdict = 'happened' | 'declined' | 'never-happened' | 'unknown'

/** One effect of phased work, in one epoch of its downstream key. */
export interface EffectRef {
  readonly position: number
  readonly name: string
  readonly epoch: number
}

/** What evidence is about: a row; of phased work that has an effect open, that effect. */
export interface Subject {
  readonly id: string
  readonly effect: EffectRef | undefined
}

/**
 * `outcome` is the whole answer of the row: guarded work, and phased work without an open effect. `value` is that of the
 * open effect, JSON text: the remaining steps run with it.
 */
export type FoundVerdict =
  | { readonly kind: 'happened' | 'declined'; readonly outcome: Outcome }
  | { readonly kind: 'happened' | 'declined'; readonly value: string | undefined }
  | { readonly kind: 'never-happened' }

export interface Finding {
  readonly source: Exclude<EvidenceSource, 'operator'>
  /** The source's own name for this evidence, at most 200 characters: twice under one name is one piece of evidence. */
  readonly ref: string
  readonly verdict: FoundVerdict
  /**
   * A signed message, and when its sender signed this delivery of it. Messages are remembered apart from the row, so that one
   * of an earlier generation of a key is never evidence about a later one.
   */
  readonly delivery?: { readonly signedAtMs: number }
}

/**
 * `duplicate`: stored before. `replayed`: not signed later than the delivery that is known, so it is a recording. `no-row`: there
 * is no such row, or it began after the message was first received.
 */
export type KeepResult =
  | { readonly kind: 'kept'; readonly evidenceId: string }
  | { readonly kind: 'duplicate'; readonly evidenceId: string }
  | { readonly kind: 'replayed' }
  | { readonly kind: 'no-row' }

export interface ApplyOptions {
  /** How long after the row became unknown a "never happened" proves nothing: the request may still be on its way. */
  readonly quarantineMs: number
  /** For an outcome: how long it is retained. */
  readonly retentionMs: number
  /** The evidence of a look-up: it counts only while the look-up is its owner's. */
  readonly lookup?: LookupClaim
}

/**
 * `settled`: guarded → `completed` or `failed_retryable`; phased → `pending`, with the effect's value recorded, or with its epoch raised.
 * `not-applicable`: the row is in another state, or the evidence is about another effect or epoch, or gives an outcome where a
 * value is needed; it stays stored. `too-early`: a "never happened" inside the quarantine; such evidence never counts later.
 */
export type ApplyResult =
  | { readonly kind: 'settled'; readonly to: 'completed' | 'failed_retryable' | 'pending' }
  | { readonly kind: 'applied-before' }
  | { readonly kind: 'too-early'; readonly leftMs: number }
  | { readonly kind: 'not-applicable'; readonly state: RowState | undefined }
  | { readonly kind: 'claim-lost' }

export interface LookupClaim {
  readonly id: string
  /** The key's, when the look-up was granted. */
  readonly fence: number
  /** Rises with every look-up of this unknown. */
  readonly look: number
}

export interface Lookup extends LookupClaim {
  readonly identity: Identity
  /** How many look-ups there were since the row became unknown or was unparked, this one included. */
  readonly tries: number
  readonly unknownForMs: number
  readonly createdAtMs: number
  readonly attempts: number
  /** The effect in doubt. Absent: guarded work, or phased work that itself reported an unknown outcome. */
  readonly effect: EffectRef | undefined
}

export interface UnknownSummary {
  readonly operation: string
  readonly count: number
  readonly parked: number
  readonly oldestMs: number
}

/** One run of a ledger comparison; `run` rises and fences it. */
export interface LedgerRun {
  readonly name: string
  readonly run: number
}

export interface LedgerCounts {
  readonly compared: number
  readonly missing: number
  readonly extra: number
  readonly different: number
  readonly settled: number
}

export interface LastLedgerRun extends LedgerCounts {
  readonly finishedAgoMs: number
}

export interface Reconciliation {
  keep(subject: Subject, finding: Finding): Promise<KeepResult>
  /** One compare-and-set, with the evidence marked in the same commit. The key's fence stays. A parked mark is removed. */
  apply(evidenceId: string, options: ApplyOptions): Promise<ApplyResult>
  /** Positive evidence that is stored and not applied, of rows that are unknown and that it could settle. */
  waiting(options: { readonly limit: number }): Promise<readonly { evidenceId: string; operation: string }[]>
  /** Which effect was given this downstream key (uuid shape); the newest, where a key was used again after its row expired. */
  findEffect(downstreamKey: string): Promise<Subject | undefined>

  /**
   * Unknown rows of one operation, not parked, whose next look-up is due; the first one is `firstInMs` after the row became unknown. Each is
   * granted to this caller for `leaseMs`; longest waiting first.
   */
  lookups(options: {
    readonly operation: string
    readonly firstInMs: number
    readonly leaseMs: number
    readonly limit: number
  }): Promise<readonly Lookup[]>
  /** The look-up brought no answer: the next one is due after `inMs`. */
  postpone(lookup: LookupClaim, inMs: number): Promise<OwnerResult>
  /** No look-up will answer: the row stays `unknown` and is parked, with the cause as its last error code. `unpark` makes it due now, tries 0. */
  giveUp(lookup: LookupClaim, cause: string): Promise<OwnerResult>
  /** How long until the next look-up of this row; zero or less: it is due. Undefined: not unknown, parked, or not looked up yet. */
  nextLookUpInMs(id: string): Promise<number | undefined>
  /** By operation; only operations that have unknown rows. */
  unknowns(): Promise<readonly UnknownSummary[]>

  /** Forgets messages received longer ago than this; returns how many. It must be longer than senders retry. */
  forgetDeliveries(options: { readonly olderThanMs: number; readonly limit: number }): Promise<number>
}

/** Comparisons with a provider's ledger: one run at a time under each name. */
export interface Ledgers {
  /** Begins a run if the last one began `everyMs` ago or never, and no other run is under way within its lease. */
  begin(
    name: string,
    options: { readonly everyMs: number; readonly leaseMs: number },
  ): Promise<{ readonly kind: 'begun'; readonly run: LedgerRun } | { readonly kind: 'not-due'; readonly inMs: number }>
  renew(run: LedgerRun, leaseMs: number): Promise<OwnerResult>
  /** `counts` absent: the run failed; the next one may begin after `retryInMs`. */
  end(run: LedgerRun, end: { readonly counts: LedgerCounts } | { readonly retryInMs: number }): Promise<OwnerResult>
  last(name: string): Promise<LastLedgerRun | undefined>
}

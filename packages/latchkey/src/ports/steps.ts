/**
 * The journal of phased work: its input and its steps, stored beside the key's row.
 *
 * Two faculties. `Steps` needs no transaction: input, intents and results are the store's own writes. `Phases` needs one: what the
 * application writes commits with the step.
 *
 * phase    one atomic step in the database: its writes, its value and the recovery point commit together
 * effect   something outside our database; its intent is committed before the call, its value after it
 * epoch    part of the downstream key; rises only with recorded negative evidence
 *
 * Steps are numbered from 0 in the order in which the definition reaches them; code between steps is run again on every
 * resume and must reach the same ones.
 */
import type { Claim, OwnerResult } from './store.ts'

/** The input of phased work; written at the grant, once. JSON text, at most 64 KiB. */
export interface WorkInput {
  readonly version: number
  readonly input: string
  /** Deferred work must have begun within this, counted from when it was written. */
  readonly deadlineInMs?: number
}

/**
 * `open`: the intent is committed and no value is: it may have happened. `again`: it is known not to have happened, and
 * may be tried with the step's epoch. `done`: the value is stored.
 */
export type StepState = 'open' | 'again' | 'done'

export interface Step {
  readonly position: number
  readonly name: string
  readonly kind: 'phase' | 'effect'
  readonly state: StepState
  /** JSON text; only when `done`. Absent: the step returned nothing. */
  readonly value: string | undefined
  readonly epoch: number
  /** An `open` effect whose first try is still inside its provider's dedup window: repeating it with the same key is safe. */
  readonly repeatable: boolean
}

export interface Journal {
  readonly work: Pick<WorkInput, 'version' | 'input'>
  /** Its deadline has passed, by the store's clock. */
  readonly overdue: boolean
  readonly steps: readonly Step[]
}

/** A newer version wrote a step of it, or it is damaged: no step may run from it. */
export interface UnreadableJournal {
  readonly work: undefined
  readonly overdue: undefined
  readonly steps: undefined
  /** For the operator. */
  readonly why: string
}

export interface PhaseDone {
  readonly position: number
  readonly name: string
  readonly value: string | undefined
}

export interface Intent {
  readonly position: number
  readonly name: string
  readonly epoch: number
  /** The downstream key, uuid shape: by it a provider's message finds the effect. */
  readonly key: string
  /** How long the provider recognises our key, from the first try. Absent: it does not. */
  readonly windowMs: number | undefined
}

export interface EffectDone {
  readonly position: number
  readonly value: string | undefined
}

export interface Steps {
  readJournal(id: string): Promise<Journal | UnreadableJournal | undefined>
  /** Committed before the call. Opening an intent that is already `open` leaves the time of its first try. Renews the lease. */
  openIntent(claim: Claim, intent: Intent, leaseMs: number): Promise<OwnerResult>
  /** `open` → `done`. Repeated after a lost reply it is `written` again. Renews the lease. */
  recordResult(claim: Claim, effect: EffectDone, leaseMs: number): Promise<OwnerResult>
}

export interface Phases<Tx> {
  /** First in the phase's transaction: takes the identity's lock (as `reserve` does, but waiting) and checks the claim. */
  enterPhase(tx: Tx, claim: Claim): Promise<OwnerResult>
  /** Last in the phase's transaction: checks that the claim is still ours, stores the step, renews the lease. */
  recordPhase(tx: Tx, claim: Claim, phase: PhaseDone, leaseMs: number): Promise<OwnerResult>
}

/** What a phased definition is given. */
import type { NetworkFailure } from '../rules/network-failure.ts'
import type { JsonOf, Storable } from '../json-of.ts'
import type { OutboxMessage } from '../outbox.ts'

export interface EffectOptions {
  /**
   * The provider recognises the downstream key for this long: an interrupted call is repeated within it. Absent: it does not,
   * and an interrupted call is `unknown`.
   */
  readonly dedup?: { readonly windowMs: number }
  /** Longest time the call may take; then `signal` aborts it and its outcome is unknown. The lease is made to cover it. */
  readonly timeoutMs: number
  /** Your own judgement of an error. Undefined: as `classifyNetworkFailure` says. */
  readonly classify?: (error: unknown) => NetworkFailure | undefined
}

export interface EffectCall {
  /** The row's. Put it into the provider's metadata: a webhook that brings it back finds the row, also without the key. */
  readonly id: string
  /** Send it as the provider's idempotency key: the same for every try of this effect, until evidence says it never happened. */
  readonly key: string
  readonly signal: AbortSignal
}

/** What every phased definition is given; all of it, where the operation is declared with `steps: 'effects'`. */
export interface EffectsExecution {
  /** The row's: the same in every run, and the id of its status. */
  readonly id: string
  readonly scope: string
  readonly operation: string
  /** 1 for the first run, rising with every grant of the row. */
  readonly attempt: number
  readonly fence: number
  /** The last finished step when this run began; undefined: it starts from the beginning. */
  readonly recoveryPoint: string | undefined
  /**
   * Something outside the database. Its intent is committed before the call, its value after it. The function throws when the
   * call failed; a refusal that is an answer (a declined card) is a value. Its name is part of its key: in a loop, put the item
   * into it.
   */
  effect<T extends Storable>(
    name: string,
    options: EffectOptions,
    call: (effect: EffectCall) => Promise<T>,
  ): Promise<JsonOf<T>>
  /**
   * A name under which operators find this row: the provider's id of what was made, an order number. At most 200 characters, and ten for a run. It
   * is stored at once. It never throws and never rejects: what could not be stored is reported to `telemetry`.
   */
  reference(text: string): Promise<void>
}

export interface PhasedExecution<Tx> extends EffectsExecution {
  /**
   * One transaction: what is written through `tx`, the phase's value and the recovery point commit together. On a resume
   * the value is returned and the function does not run. The value is JSON, at most 64 KiB.
   */
  phase<T extends Storable>(name: string, work: (tx: Tx) => PromiseLike<T> | T): Promise<JsonOf<T>>
  readonly outbox: {
    /** In a phase: the message exists exactly when the phase has committed. */
    append(tx: Tx, message: OutboxMessage): Promise<void>
  }
}

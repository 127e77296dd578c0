/** What the shop and its payment provider both know. */

export interface Charge {
  readonly id: string
  /** The downstream key that the shop sent. With idempotency on, the provider makes one charge per key. */
  readonly key: string
  readonly account: string
  readonly amount: number
  /** What the shop calls this payment; kept with the charge, and nothing is decided by it. */
  readonly reference?: string
}

/** The provider makes this charge and loses the answer: the case that nobody can decide by program. */
export const lostAnswerAmount = 1313

/**
 * What can go wrong at the provider.
 *
 * slow           charges and answers, `ms` later
 * lose-response  charges, and closes the connection instead of answering
 * fail-after     charges, and answers 500
 * refuse         charges nothing and answers 402
 * late           answers nothing; charges `ms` after the client gave up
 * down           connections are refused
 */
export type FaultKind = 'slow' | 'lose-response' | 'fail-after' | 'refuse' | 'late' | 'down'

export interface Fault {
  readonly kind: FaultKind
  /** How many requests it strikes. Absent: until it is switched off. Not for `down`, which sees no requests. */
  readonly requests?: number
  /** `slow` and `late`: how long to wait (default 1 s). `down`: for how long (default: until it is switched off). */
  readonly ms?: number
}

export interface ProviderState {
  readonly idempotency: boolean
  readonly fault: Fault | null
}

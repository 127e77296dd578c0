/** What the shop and its payment provider both know. */

export interface Charge {
  readonly id: string
  /** The downstream key that the shop sent. Sent as idempotency key, there is one charge for it, as long as idempotency is on. */
  readonly key: string
  readonly account: string
  readonly amount: number
  /** What the shop calls this payment; kept with the charge and told in its webhook, and nothing is decided by it. */
  readonly reference?: string
}

/** A definite no: nothing was charged, and under the same idempotency key nothing will be. */
export interface Declined {
  readonly declined: true
}

/** What the provider tells by webhook, signed as Standard Webhooks has it. */
export interface ChargeEvent {
  readonly type: 'charge.succeeded'
  readonly data: Charge
}

/** The provider makes this charge and loses the answer: the case that nobody can decide by program. */
export const lostAnswerAmount = 1313

/**
 * What can go wrong at the provider.
 *
 * slow           charges and answers, `ms` later
 * hold           charges, and answers `ms` later
 * lose-response  charges, and closes the connection instead of answering
 * fail-after     charges, and answers 500
 * refuse         charges nothing and answers 402, from then on to each request with this idempotency key
 * late           answers nothing; charges `ms` after the client gave up
 * swallow        charges nothing and answers nothing: for the client no different from the one above
 * fall           charges, and is `down` for `ms` before it answers
 * down           connections are refused
 */
export type FaultKind =
  | 'slow'
  | 'hold'
  | 'lose-response'
  | 'fail-after'
  | 'refuse'
  | 'late'
  | 'swallow'
  | 'fall'
  | 'down'

export interface Fault {
  readonly kind: FaultKind
  /** How many requests it strikes. Absent: until it is switched off. Not for `down`, which sees no requests. */
  readonly requests?: number
  /** `slow`, `hold` and `late`: how long to wait (default 1 s). `fall` and `down`: for how long (default: until it is switched off). */
  readonly ms?: number
}

/** Where webhooks go. */
export interface WebhookTarget {
  readonly url: string
  /** As Standard Webhooks writes it: `whsec_` and base64. */
  readonly secret: string
  /** How long after the charge. Default 0: at once, often before the answer to the charge itself. */
  readonly delayMs?: number
}

export interface ProviderState {
  readonly idempotency: boolean
  readonly fault: Fault | null
  /** null: none are sent. */
  readonly webhook: WebhookTarget | null
  /** False: nobody can look a charge up. */
  readonly books: boolean
}

/** A request for a charge, whatever became of it. */
export interface AskedFor extends Omit<Charge, 'id'> {
  /** Its key was sent as idempotency key. */
  readonly dedup: boolean
}

/** Types that the shop and its payment provider share. */

export interface Charge {
  readonly id: string
  /** The downstream key that the shop sent. If sent as an idempotency key while idempotency is on, it has one charge. */
  readonly key: string
  readonly account: string
  readonly amount: number
  /** The shop's name for this payment. It is stored with the charge and included in its webhook, but decides nothing. */
  readonly reference?: string
}

/** A definite refusal: nothing was charged, and nothing will be under the same idempotency key. */
export interface Declined {
  readonly declined: true
}

/** The body of the provider's webhook, signed by the Standard Webhooks scheme. */
export interface ChargeEvent {
  readonly type: 'charge.succeeded'
  readonly data: Charge
}

/** The provider makes this charge and loses the answer: a case that no program can decide. */
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
 * swallow        charges nothing and answers nothing: the client cannot tell it from `late`
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
  /** How many requests it affects. Absent: all, until it is switched off. Not for `down`, which sees no requests. */
  readonly requests?: number
  /** `slow`, `hold` and `late`: how long to wait (default 1 s). `fall` and `down`: for how long (default: until it is switched off). */
  readonly ms?: number
}

/** The receiver of webhooks. */
export interface WebhookTarget {
  readonly url: string
  /** In Standard Webhooks format: `whsec_` and base64. */
  readonly secret: string
  /** How long after the charge. Default 0: at once, often before the answer to the charge itself. */
  readonly delayMs?: number
}

export interface ProviderState {
  readonly idempotency: boolean
  readonly fault: Fault | null
  /** null: none are sent. */
  readonly webhook: WebhookTarget | null
  /** False: charges cannot be looked up. */
  readonly books: boolean
}

/** A request for a charge, whatever its result. */
export interface AskedFor extends Omit<Charge, 'id'> {
  /** Its key was sent as an idempotency key. */
  readonly dedup: boolean
}

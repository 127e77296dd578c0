/** What the shop and its payment provider both know. */

export interface Charge {
  readonly id: string
  /** The downstream key that the shop sent. The provider makes one charge per key. */
  readonly key: string
  readonly account: string
  readonly amount: number
}

/** The provider makes this charge and loses the answer: the case that nobody can decide by program. */
export const lostAnswerAmount = 1313

/**
 * Why phased work stops before its end. Thrown through the definition to unwind it; a definition that catches it and goes
 * on is stopped again at its next step, so that nothing happens after a doubt.
 */

export type HaltReason =
  /** Somebody else owns the row now. */
  | { readonly kind: 'claim-lost' }
  /** An effect may have happened. */
  | { readonly kind: 'unknown'; readonly errorCode: string; readonly cause: unknown }
  /** Proven: the step did not happen. A retry or a worker goes on from here. */
  | { readonly kind: 'retryable'; readonly errorCode: string; readonly cause: unknown }
  /** The store did not take a write whose effect is clear; the row goes by its recovery when the lease ends. */
  | { readonly kind: 'abandon'; readonly cause: unknown }
  /** The definition no longer fits the recorded steps. */
  | { readonly kind: 'park'; readonly cause: string }

/** The error code of a step that the store, and nothing else, kept from happening. */
export const storeUnavailable = 'store-unavailable'

export class Halt extends Error {
  override readonly name: string = 'Halt'
  readonly reason: HaltReason

  constructor(reason: HaltReason) {
    super(`phased work stops here: ${reason.kind}`, 'cause' in reason ? { cause: reason.cause } : undefined)
    this.reason = reason
  }
}

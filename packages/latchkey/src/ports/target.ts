/** Where the relay delivers messages to: an HTTP endpoint, a function, or anything else that implements this. */
import type { Message } from './outbox.ts'

export interface DeliveryOptions {
  /** Aborted when the delivery took too long, or when its result no longer counts. */
  readonly signal: AbortSignal
}

export type DeliveryResult =
  /** Accepted. `downstreamId`: the id that the receiver gave it, if it returned one. */
  | { readonly kind: 'delivered'; readonly downstreamId?: string }
  /** Not accepted, or unknown: tried again with the same dedup id, not before `retryAfterMs` if given. */
  | { readonly kind: 'failed'; readonly error: string; readonly retryAfterMs?: number }
  /** It will never be accepted as it is: not tried again. */
  | { readonly kind: 'refused'; readonly error: string }

export interface Target {
  /** Shown to operators: in logs, and beside parked messages. */
  readonly name: string
  /**
   * At least once: the same message may arrive again, with the same dedup id. Messages of one aggregate arrive one after the
   * other. A rejection counts as `failed`. Errors are short codes, without the payload.
   */
  deliver(message: Message, options: DeliveryOptions): Promise<DeliveryResult>
}

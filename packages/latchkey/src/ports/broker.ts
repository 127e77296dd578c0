/** Where messages go: over HTTP, into a function, or to a broker. */
import type { Message } from './outbox.ts'

export interface DeliveryOptions {
  /** Aborted when the delivery took too long, or when its result no longer counts. */
  readonly signal: AbortSignal
}

export type DeliveryResult =
  /** Taken for good. `downstreamId`: what the downstream calls it, if it said. */
  | { readonly kind: 'delivered'; readonly downstreamId?: string }
  /** Not taken, or nobody knows: to be tried again with the same dedup id, not before `retryAfterMs` if given. */
  | { readonly kind: 'failed'; readonly error: string; readonly retryAfterMs?: number }
  /** It will never be taken as it is: no use in trying again. */
  | { readonly kind: 'refused'; readonly error: string }

export interface Target {
  /** For people: logs, parked messages. */
  readonly name: string
  /**
   * At least once: the same message may come again, with the same dedup id. Messages of one aggregate come one after the
   * other. A rejection counts as `failed`. Errors are short codes, without the payload.
   */
  deliver(message: Message, options: DeliveryOptions): Promise<DeliveryResult>
}

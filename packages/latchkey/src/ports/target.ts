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

/** What a target may have to know about the relay. */
export interface RelayTiming {
  /** The longest time between two attempts of one message, as long as a relay is running. */
  readonly retryGapMs: number
}

export interface Target {
  /** Shown to operators: in logs, and beside parked messages. */
  readonly name: string
  /** How many deliveries it takes at once, each of another aggregate. Default: as many as the relay's `concurrency`. */
  readonly concurrency?: number
  /**
   * Called before the first delivery, which waits for it. When it rejects, nothing is delivered: messages fail, and it is called again for the
   * next one. Default: there is nothing to prepare.
   */
  prepare?(timing: RelayTiming): Promise<void>
  /**
   * At least once: the same message may arrive again, with the same dedup id. Messages of one aggregate arrive one after the
   * other. A rejection counts as `failed`. Errors are short codes, without the payload.
   */
  deliver(message: Message, options: DeliveryOptions): Promise<DeliveryResult>
}

/** What an application appends to the outbox. */

export interface OutboxMessage {
  /** Which target it goes to. */
  readonly topic: string
  /** Messages of one aggregate keep their order. Default: none, no order is promised. */
  readonly aggregate?: string
  /** Names the message for its consumer's inbox: the same key is the same message. Default: a random one. */
  readonly key?: string
  /** JSON, at most 64 KiB. */
  readonly payload: unknown
  readonly headers?: Readonly<Record<string, string>>
}

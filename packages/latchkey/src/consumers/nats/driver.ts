/** The few methods used of `@nats-io/jetstream`. Typed by shape, so that the application brings its own version. */

/** What `jetstream(connection).consumers.get(stream, name)` returns. */
export interface NatsConsumer {
  info(cached?: boolean): Promise<NatsConsumerInfo>
  consume(options: { max_messages: number }): Promise<NatsMessages>
}

export interface NatsConsumerInfo {
  readonly stream_name: string
  readonly name: string
  readonly config: {
    readonly ack_policy?: string
    /** Nanoseconds. */
    readonly ack_wait?: number
    readonly max_deliver?: number
  }
}

export interface NatsMessages extends AsyncIterable<NatsMessage> {
  stop(): void
}

export interface NatsMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly headers?: NatsMessageHeaders | undefined
  /** In the stream. */
  readonly seq: number
  ack(): void
  nak(millis?: number): void
  term(): void
  working(): void
}

export interface NatsMessageHeaders extends Iterable<[string, string[]]> {
  /** An empty text where there is none. */
  get(name: string): string
}

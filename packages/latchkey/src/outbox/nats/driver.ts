/** The few methods used of `@nats-io/jetstream`. Typed by shape, so that the application brings its own version. */

/** What `jetstream(connection)` returns. */
export interface JetStream<Headers> {
  publish(subject: string, payload: Uint8Array, options: NatsPublishOptions<Headers>): Promise<NatsAck>
  jetstreamManager(checkApi?: boolean): Promise<NatsManager>
}

export interface NatsPublishOptions<Headers> {
  readonly msgID: string
  readonly headers: Headers
  readonly timeout: number
  readonly expect: { streamName: string }
}

export interface NatsAck {
  readonly stream: string
  readonly seq: number
}

export interface NatsManager {
  readonly streams: {
    info(stream: string): Promise<NatsStream>
    /** Rejects with `StreamNotFoundError` if no stream stores this subject. */
    find(subject: string): Promise<string>
  }
}

export interface NatsStream {
  /** Nanoseconds. */
  readonly config: { readonly duplicate_window?: number }
}

/** What `headers()` of `@nats-io/nats-core` returns. */
export interface NatsHeaders {
  set(name: string, value: string): void
}

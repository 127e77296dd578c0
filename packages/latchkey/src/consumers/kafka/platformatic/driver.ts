/** The few methods used of `@platformatic/kafka`. Typed by shape, so that the application brings its own version. */

/** `new Consumer({ groupId, … })`. */
export interface PlatformaticConsumer {
  readonly groupId: string
  consume(options: PlatformaticStreamOptions): Promise<PlatformaticStream>
}

export interface PlatformaticStreamOptions {
  topics: string[]
  autocommit: false
  mode: 'committed'
  fallbackMode: 'earliest'
}

/** Messages of all partitions that this member has. It beats for the group by itself, whether or not it is read. */
export interface PlatformaticStream extends AsyncIterable<PlatformaticMessage> {
  close(): Promise<void>
}

export interface PlatformaticMessage {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly value: PlatformaticBytes | null | undefined
  readonly headers: ReadonlyMap<PlatformaticBytes, PlatformaticBytes | null>
  /** The position behind it. */
  commit(): void | Promise<void>
}

/** Bytes, unless the consumer has deserializers that make texts of them. */
export type PlatformaticBytes = Uint8Array | string

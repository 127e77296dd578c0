/** The few methods used of `kafkajs`, and of clients of its shape. Typed by shape, so that the application brings its own version. */

/** What `kafka.consumer(…)` returns, connected and subscribed. */
export interface KafkaConsumer {
  connect(): Promise<void>
  run(config: KafkaRunConfig): Promise<void>
  stop(): Promise<void>
  commitOffsets(offsets: KafkaOffset[]): Promise<void>
  /** Of kafkajs. */
  on?(event: 'consumer.crash', listener: (event: KafkaCrash) => void): () => void
}

export interface KafkaRunConfig {
  autoCommit?: boolean
  eachBatchAutoResolve: boolean
  partitionsConsumedConcurrently: number
  eachBatch(payload: KafkaBatchPayload): Promise<void>
}

export interface KafkaOffset {
  topic: string
  partition: number
  offset: string
}

export interface KafkaCrash {
  readonly payload: {
    readonly error: Error
    /** Whether the client starts the consumer again by itself. */
    readonly restart: boolean
  }
}

/** Messages of one partition. */
export interface KafkaBatchPayload {
  readonly batch: {
    readonly topic: string
    readonly partition: number
    readonly messages: readonly KafkaMessage[]
  }
  /** The next batch begins behind it. */
  resolveOffset(offset: string): void
  /** Rejects if the group is rebalanced, or has put this member out. */
  heartbeat(): Promise<void>
  /** Reads no more of this partition until what it returns is called. */
  pause(): () => void
  isRunning(): boolean
  /** The rest of the batch is not to be worked on: the partition is read from another place, or by another member. */
  isStale(): boolean
}

export interface KafkaMessage {
  readonly offset: string
  /** Null: a tombstone. */
  readonly value: Uint8Array | null
  readonly headers?: KafkaHeaders | undefined
}

export type KafkaHeaders = Readonly<Record<string, KafkaHeader | readonly KafkaHeader[] | undefined>>
export type KafkaHeader = Uint8Array | string

/** The one method used of `kafkajs`. Typed by shape, so that the application brings its own version. */

/** What `kafka.producer(…)` returns, connected. */
export interface KafkaProducer {
  sendBatch(batch: KafkaBatch): Promise<unknown>
}

export interface KafkaBatch {
  acks: number
  topicMessages: KafkaTopicMessages[]
}

export interface KafkaTopicMessages {
  topic: string
  messages: KafkaRecord[]
}

export interface KafkaRecord {
  key: string | null
  value: Buffer
  headers: Record<string, string>
}

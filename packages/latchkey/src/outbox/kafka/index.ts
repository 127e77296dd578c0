/** A target for the relay: topics of Kafka. */
export { kafkaTarget, type KafkaTargetOptions } from './target.ts'
export type { KafkaBatch, KafkaProducer, KafkaRecord, KafkaTopicMessages } from './driver.ts'
export type { Address } from '../broker-message.ts'

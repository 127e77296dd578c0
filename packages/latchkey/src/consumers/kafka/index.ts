/** Consumers of Kafka, on `kafkajs` and clients of its shape. */
export { consume, type KafkaConsumeOptions, type KafkaDefinedConsumeOptions } from './consume.ts'
export type {
  KafkaBatchPayload,
  KafkaConsumer,
  KafkaCrash,
  KafkaHeader,
  KafkaHeaders,
  KafkaMessage,
  KafkaOffset,
  KafkaRunConfig,
} from './driver.ts'
export type { KafkaCommonOptions } from './options.ts'
export type { EnvelopeOptions } from '../envelope.ts'
export type { StopOptions } from '../consuming.ts'
export type { ConsumeOptions, InputOptions, Subscription } from '../options.ts'

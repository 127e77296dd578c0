/** Consumers of Kafka, on `@platformatic/kafka`. */
export { consume, type PlatformaticConsumeOptions, type PlatformaticDefinedConsumeOptions } from './consume.ts'
export type {
  PlatformaticBytes,
  PlatformaticConsumer,
  PlatformaticMessage,
  PlatformaticStream,
  PlatformaticStreamOptions,
} from './driver.ts'
export type { KafkaCommonOptions } from '../options.ts'
export type { EnvelopeOptions } from '../../envelope.ts'
export type { StopOptions } from '../../consuming.ts'
export type { ConsumeOptions, InputOptions, Subscription } from '../../options.ts'

/** Consumers of NATS JetStream. */
export { consume, type NatsConsumeOptions, type NatsDefinedConsumeOptions } from './consume.ts'
export type { NatsConsumer, NatsConsumerInfo, NatsMessage, NatsMessageHeaders, NatsMessages } from './driver.ts'
export type { EnvelopeOptions } from '../envelope.ts'
export type { StopOptions } from '../consuming.ts'
export type { ConsumeOptions, InputOptions, Subscription } from '../options.ts'

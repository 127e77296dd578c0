/** A target for the relay: streams of NATS JetStream. */
export { natsTarget, type NatsTargetOptions } from './target.ts'
export type { JetStream, NatsAck, NatsHeaders, NatsManager, NatsPublishOptions, NatsStream } from './driver.ts'
export type { Address } from '../broker-message.ts'

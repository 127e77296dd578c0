/** A target for the relay: exchanges of RabbitMQ. */
export { rabbitmqTarget, type RabbitmqTargetOptions } from './target.ts'
export type { ConfirmChannel, RabbitmqConnection, RabbitmqPublishOptions, ReturnedMessage } from './driver.ts'
export type { Address } from '../broker-message.ts'

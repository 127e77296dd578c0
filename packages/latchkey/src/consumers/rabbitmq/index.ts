/** Consumers of RabbitMQ. */
export { consume, type RabbitmqConsumeOptions, type RabbitmqDefinedConsumeOptions } from './consume.ts'
export type {
  RabbitmqChannel,
  RabbitmqConnection,
  RabbitmqMessage,
  RabbitmqProperties,
  RabbitmqQueueOptions,
} from './driver.ts'
export type { WaitQueueType } from './wait-queues.ts'
export type { StopOptions } from '../consuming.ts'
export type { ConsumeOptions, InputOptions, Subscription } from '../options.ts'

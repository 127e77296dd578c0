import type { TestBroker } from './broker.ts'
import { kafka } from './kafka.ts'
import { nats } from './nats.ts'
import { rabbitmq } from './rabbitmq.ts'

export const brokers = { kafka, nats, rabbitmq } satisfies Record<string, TestBroker>
export type BrokerName = keyof typeof brokers

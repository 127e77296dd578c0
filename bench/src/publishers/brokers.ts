/** Each broker's client, as a target of the relay and as people use it by hand. */
import { randomUUID } from 'node:crypto'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats, headers, nanos } from '@nats-io/transport-node'
import { connect as connectRabbitmq } from 'amqplib'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import type { Target } from 'latchkey/outbox'
import { kafkaTarget } from 'latchkey/outbox/kafka'
import { natsTarget } from 'latchkey/outbox/nats'
import { rabbitmqTarget } from 'latchkey/outbox/rabbitmq'

export const brokerNames = ['nats', 'rabbitmq', 'kafka'] as const
export type BrokerName = (typeof brokerNames)[number]

export interface Broker {
  readonly target: Target
  /** Publishes one message and waits for its confirm. */
  publish(content: Buffer): Promise<void>
  close(): Promise<void>
}

export const openBroker: Readonly<Record<BrokerName, (address: string) => Promise<Broker>>> = {
  async nats(address) {
    const connection = await connectNats({ servers: address })
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: 'ORDERS', subjects: ['orders'], duplicate_window: nanos(600_000) })
    const client = jetstream(connection)
    return {
      target: natsTarget({ jetstream: client, headers, stream: 'ORDERS' }),
      publish: async content => void (await client.publish('orders', content, { msgID: randomUUID() })),
      close: () => connection.close(),
    }
  },
  async rabbitmq(address) {
    const connection = await connectRabbitmq(address)
    const channel = await connection.createConfirmChannel()
    await channel.assertQueue('orders', { durable: true })
    const options = () => ({ persistent: true, mandatory: true, messageId: randomUUID() })
    return {
      target: rabbitmqTarget({ connection, exchange: '' }),
      publish: content =>
        new Promise((resolve, reject) => {
          channel.publish('', 'orders', content, options(), error => (error === null ? resolve() : reject(error)))
        }),
      close: () => connection.close(),
    }
  },
  async kafka(addresses) {
    const kafka = new Kafka({ brokers: addresses.split(','), logLevel: logLevel.NOTHING })
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    return {
      target: kafkaTarget({ producer }),
      async publish(value) {
        const messages = [{ value, headers: { 'message-id': randomUUID() } }]
        await producer.send({ topic: 'orders', acks: -1, messages })
      },
      close: () => producer.disconnect(),
    }
  },
}

import { type Consumer, jetstream, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, nanos, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeNats } from '../../../../../test/servers/nats/describe-nats.ts'
import type { ConsumerBroker } from '../../../test/consumers/consumer-broker.ts'
import { defineConsumerCases } from '../../../test/consumers/consumer.cases.ts'
import { parkedMessages } from '../../inbox/index.ts'
import { consume } from './index.ts'

describeNats('a consumer of NATS', own => {
  let connection: NatsConnection
  let manager: JetStreamManager
  beforeAll(async () => {
    connection = await connect({ servers: own.server.url })
    manager = await jetstreamManager(connection)
  })
  afterAll(() => connection.close())
  beforeEach(async () => {
    await manager.streams.delete('ORDERS').catch(() => undefined)
    await manager.streams.add({ name: 'ORDERS', subjects: ['orders'] })
  })

  async function durable(over: object = {}): Promise<Consumer> {
    const config = { durable_name: 'billing', ack_policy: 'explicit', ack_wait: nanos(30_000), max_ack_pending: 100 }
    await manager.consumers.add('ORDERS', { ...config, ...over } as never)
    return jetstream(connection).consumers.get('ORDERS', 'billing')
  }

  const broker: ConsumerBroker = {
    async publish(id, data) {
      const all = headers()
      if (id !== undefined) {
        all.set('ce-source', '/shop')
        all.set('ce-id', id)
      }
      all.set('content-type', 'application/json')
      await jetstream(connection).publish('orders', JSON.stringify(data), { headers: all })
    },
    consume: async (operation, options, handler) => consume(operation, { from: await durable(), ...options }, handler),
    async waiting() {
      const { num_pending: pending, num_ack_pending: open } = await manager.consumers.info('ORDERS', 'billing')
      return pending + open
    },
  }
  const { latchkey, start, allSettled } = defineConsumerCases(() => broker)

  it('names the durable consumer and the position of what it parked', async () => {
    await broker.publish(undefined, { order: 'none' })
    await start(() => undefined)
    await allSettled()
    const { messages } = await parkedMessages(latchkey()).list({ limit: 10 })
    expect(messages).toMatchObject([{ consumer: 'billing', source: 'ORDERS', position: 'ORDERS/1' }])
  })

  /** Two and a half times `ack_wait`, and within the limit of a transaction. */
  const forLong = () => new Promise<void>(resolve => setTimeout(resolve, 1_500))

  it('is not delivered a message again while it runs, however long that takes', async () => {
    const operation = latchkey().guarded('orders.book', { onFailure: 'rerun', leaseMs: 600 })
    const from = await durable({ ack_wait: nanos(600) })
    let runs = 0
    // There is room for a second delivery.
    const started = await consume(operation, { from, concurrency: 2 }, () => {
      runs += 1
      return forLong()
    })
    await broker.publish('m-1', { order: 'm-1' })
    await allSettled()
    await started.stop()
    expect(runs).toBe(1)
    const { delivered } = await manager.consumers.info('ORDERS', 'billing')
    expect(delivered.consumer_seq).toBe(1)
  })

  it('renews a message of an atomic operation however short its ack_wait is', async () => {
    const from = await durable({ ack_wait: nanos(600) })
    const started = await consume(latchkey().atomic('orders.book'), { from, concurrency: 2 }, forLong)
    await broker.publish('m-1', { order: 'm-1' })
    await allSettled()
    await started.stop()
    const { delivered } = await manager.consumers.info('ORDERS', 'billing')
    expect(delivered.consumer_seq).toBe(1)
  })

  it.each([
    [{ ack_policy: 'all' }, 'ack_policy all'],
    [{ ack_wait: nanos(5_000) }, 'ack_wait of 5000 ms, and the operation a leaseMs of 10000'],
    [{ max_deliver: 5 }, 'max_deliver 5'],
  ])('refuses a consumer with %j', async (over, message) => {
    const operation = latchkey().guarded('orders.book', { onFailure: 'rerun', leaseMs: 10_000 })
    const from = await durable(over)
    await expect(consume(operation, { from }, () => undefined)).rejects.toThrow(message)
  })

  it('refuses options that are none, and a missing handler', async () => {
    const operation = latchkey().guarded('orders.book', { onFailure: 'rerun' })
    const from = await durable()
    const wrong: [object, string][] = [
      [{}, 'from is missing'],
      [{ from: {} }, 'from must be a consumer of JetStream'],
      [{ from, queue: 'x' }, 'unknown option queue'],
      [{ from, identity: 'offset' }, 'identity'],
    ]
    for (const [options, message] of wrong) {
      await expect(consume(operation, options as never, () => undefined)).rejects.toThrow(message)
    }
    await expect(consume(operation, { from }, undefined as never)).rejects.toThrow('needs a handler')
  })
})

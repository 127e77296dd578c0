import { type Channel, type ChannelModel, connect, type RecoveringChannelModel } from 'amqplib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { describeRabbitmq } from '../../../../../test/servers/rabbitmq/describe-rabbitmq.ts'
import { startTcpProxy } from '../../../../../test/servers/tcp-proxy.ts'
import { drain, type OpenBroker, order, type StoredMessage } from '../../../test/outbox/broker-fixture.ts'
import { describeBrokerCases } from '../../../test/outbox/broker.cases.ts'
import { openFixture, type OutboxFixture } from '../../../test/outbox/fixture.ts'
import { createRelay } from '../index.ts'
import { rabbitmqTarget } from './index.ts'

const exchange = 'publisher-orders'
const queue = 'publisher-orders-queue'

describeRabbitmq('an exchange of RabbitMQ', server => {
  let observer: ChannelModel
  let channel: Channel
  let taken: StoredMessage[] = []
  beforeAll(async () => {
    observer = await connect(server.url)
    channel = await observer.createChannel()
    await channel.assertExchange(exchange, 'direct', { durable: true })
    await channel.assertQueue(queue, { durable: true })
    await channel.bindQueue(queue, exchange, 'orders')
  })
  beforeEach(async () => {
    await channel.purgeQueue(queue)
    taken = []
  })
  afterAll(() => observer.close())

  async function stored(): Promise<readonly StoredMessage[]> {
    for (;;) {
      const found = await channel.get(queue, { noAck: true })
      if (found === false) return taken
      const { messageId = '', contentType = '', headers = {} } = found.properties
      const all = Object.entries(headers).map(([name, value]) => [name, String(value)])
      const text = found.content.toString()
      taken.push({ id: messageId, text, headers: { ...Object.fromEntries(all), 'content-type': contentType } })
    }
  }

  async function connectThrough(url: string): Promise<RecoveringChannelModel> {
    const connection = await connect(url, { recovery: { initialDelay: 50, maxDelay: 50 } })
    connection.on('error', () => {})
    return connection
  }

  async function openBroker(): Promise<OpenBroker> {
    const wire = await startTcpProxy(server.url)
    const connection = await connectThrough(wire.through(server.url))
    return {
      target: rabbitmqTarget({ connection, exchange }),
      stored,
      cut: (word, lost) => void wire.cutAt(word, lost),
      refused: id => ({ message: order(id, { topic: 'nowhere' }), cause: 'unroutable' }),
      async close() {
        await connection.close()
        await wire.close()
      },
    }
  }

  describeBrokerCases({ open: openBroker, copies: 2 })

  describe('by itself', () => {
    let fixture: OutboxFixture
    beforeEach(async () => {
      fixture = await openFixture()
      return () => fixture.close()
    })

    it('stores messages so that they survive a restart of the server', async () => {
      await fixture.append(order('m'))
      await drain(fixture, rabbitmqTarget({ connection: observer, exchange }))
      const found = await channel.get(queue, { noAck: true })
      expect(found !== false && found.properties.deliveryMode).toBe(2)
    })

    it('finds the message that is too large among those that were sent with it', async () => {
      const large = order('large', { aggregate: 'large', payload: Buffer.alloc(65_000) })
      const small = Array.from({ length: 30 }, (_, index) => order(`m${index}`, { aggregate: `a${index}` }))
      await fixture.append(...small.slice(0, 15), large, ...small.slice(15))
      await drain(fixture, rabbitmqTarget({ connection: observer, exchange }))
      expect(await fixture.store.outbox.parked({ limit: 10 })).toMatchObject([{ dedupId: 'large', cause: 'AMQP 406' }])
      expect(await fixture.store.outbox.lag()).toMatchObject({ waiting: 0, parked: 1 })
      expect(new Set((await stored()).map(({ id }) => id))).toEqual(new Set(small.map(({ dedupId }) => dedupId)))
    })

    it('parks a message to an exchange that does not exist', async () => {
      await fixture.append(order('m'))
      await drain(fixture, rabbitmqTarget({ connection: observer, exchange: 'publisher-nowhere' }))
      expect(await fixture.store.outbox.parked({ limit: 1 })).toMatchObject([{ dedupId: 'm', cause: 'AMQP 404' }])
    })

    it('tries again what a full queue refuses', async () => {
      await channel.assertQueue('publisher-full', { arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' } })
      await fixture.append(...['m1', 'm2', 'm3'].map(id => order(id, { aggregate: 'a' })))
      const target = rabbitmqTarget({ connection: observer, exchange: '', routingKey: 'publisher-full' })
      const counts = await drain(fixture, target)
      await channel.deleteQueue('publisher-full')
      expect(counts).toMatchObject([{ failed: 1, parked: 0 }])
      expect(await fixture.store.outbox.lag()).toMatchObject({ parked: 0 })
    })

    it('does not publish later what the relay gave up on while there was no connection', async () => {
      await fixture.append(order('m'))
      let recover = () => {}
      const recovered = new Promise<void>(resolve => void (recover = resolve))
      const connection = { createConfirmChannel: () => recovered.then(() => observer.createConfirmChannel()) }
      const target = rabbitmqTarget({ connection, exchange })
      const relay = createRelay({ outbox: fixture.store.outbox, targets: { orders: target }, timeoutMs: 50 })
      expect(await relay.relayOnce()).toMatchObject({ failed: 1 })
      recover()
      fixture.makeDue()
      expect(await drain(fixture, target)).toMatchObject([{ delivered: 1 }])
      expect(await stored()).toMatchObject([{ id: 'm' }])
    })

    it('parks a message whose names are too long for the protocol', async () => {
      await fixture.append(order('m', { topic: 'ü'.repeat(200) }))
      await drain(fixture, rabbitmqTarget({ connection: observer, exchange }))
      expect(await fixture.store.outbox.parked({ limit: 1 })).toMatchObject([{ cause: 'name-too-long' }])
    })
  })
})

it('refuses wrong options at construction', () => {
  expect(() => rabbitmqTarget({} as never)).toThrow(/needs connection/)
  expect(() => rabbitmqTarget({ connection: {}, exchange: '' } as never)).toThrow(/createConfirmChannel/)
})

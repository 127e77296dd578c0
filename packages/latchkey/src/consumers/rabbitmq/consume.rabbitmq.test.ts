import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeRabbitmq } from '../../../../../test/servers/rabbitmq/describe-rabbitmq.ts'
import { startTcpProxy } from '../../../../../test/servers/tcp-proxy.ts'
import { type ConsumerBroker, eventually } from '../../../test/consumers/consumer-broker.ts'
import { defineConsumerCases } from '../../../test/consumers/consumer.cases.ts'
import { consume } from './index.ts'

const exchange = 'consumer-orders'
const queue = 'consumer-orders-billing'
const copies = 'consumer-orders-copies'
/** As short as the tests' backoff. */
const waitMs = [20, 300, 600, 1_000]

describeRabbitmq('a consumer of RabbitMQ', server => {
  let connection: ChannelModel
  let channel: ConfirmChannel
  const queues = [queue, ...waitMs.map(ms => `${queue}.wait.${ms}`)]
  beforeAll(async () => {
    connection = await connect(server.url)
    channel = await connection.createConfirmChannel()
    await channel.assertExchange(exchange, 'fanout', { durable: true })
  })
  afterAll(() => connection.close())
  beforeEach(async () => {
    for (const each of queues) await channel.deleteQueue(each)
    await channel.assertQueue(queue, { durable: true })
    await channel.bindQueue(queue, exchange, '')
  })

  /** By producers without CloudEvents. */
  async function publish(messageId: string | undefined, data: unknown): Promise<void> {
    const options = {
      contentType: 'application/json',
      persistent: true,
      ...(messageId === undefined ? {} : { messageId }),
    }
    channel.publish(exchange, '', Buffer.from(JSON.stringify(data)), options)
    await channel.waitForConfirms()
  }

  /** In the queue, and in those beside it. */
  async function ready(): Promise<number> {
    let messages = 0
    for (const each of queues) {
      // A queue that is not there yet closes the channel.
      const asked = await connection.createChannel()
      asked.on('error', () => {})
      messages += await asked.checkQueue(each).then(
        ({ messageCount }) => messageCount,
        () => 0,
      )
      await asked.close().catch(() => undefined)
    }
    return messages
  }

  const broker: ConsumerBroker = {
    publish,
    consume: (operation, options, handler) => consume(operation, { connection, queue, waitMs, ...options }, handler),
    async waiting() {
      const before = await ready()
      if (before > 0) return before
      // A server does not tell how many are delivered and not acknowledged. One that failed is back by now.
      await new Promise(resolve => setTimeout(resolve, 200))
      return ready()
    },
  }
  const { start } = defineConsumerCases(() => broker)

  it('knows a message again that has waited, whichever queue it comes by', async () => {
    await publish('m-1', { order: 'm-1' })
    const sources: string[] = []
    await start(
      ({ source }, attempt) => {
        sources.push(source)
        if (attempt < 3) throw new Error('not yet')
      },
      { attemptsMax: 5 },
    )
    await eventually(() => expect(sources).toEqual([exchange, exchange, exchange]))
  })

  it('has messages wait in queues of a quorum, which hand them back with a confirm', async () => {
    await publish('m-1', { order: 'm-1' })
    const attempts: number[] = []
    const handler = (_: unknown, attempt: number) => {
      attempts.push(attempt)
      if (attempt < 3) throw new Error('not yet')
    }
    await start(handler, { waitQueueType: 'quorum' } as never)
    await eventually(() => expect(attempts).toEqual([1, 2, 3]))
    // As a classic queue, it is another one.
    await expect(start(() => undefined, { waitQueueType: 'classic' } as never)).rejects.toThrow('PRECONDITION_FAILED')
  })

  it('tells the type of a message, and sends a copy that waits to nobody else', async () => {
    await channel.assertQueue(copies, { durable: true })
    const options = {
      messageId: 'm-1',
      type: 'order.placed',
      contentType: 'application/json',
      headers: { CC: [copies] },
    }
    channel.sendToQueue(queue, Buffer.from('{"order":"m-1"}'), options)
    await channel.waitForConfirms()
    const types: (string | undefined)[] = []
    await start(({ type }, attempt) => {
      types.push(type)
      if (attempt === 1) throw new Error('not yet')
    })
    await eventually(() => expect(types).toEqual(['order.placed', 'order.placed']))
    expect((await channel.deleteQueue(copies)).messageCount).toBe(1)
  })

  it('goes on when a copy that waits is refused', async () => {
    await publish('m-1', { order: 'm-1' })
    await publish('m-2', { order: 'm-2' })
    const ran: string[] = []
    const refusing = await connect(server.url)
    refusing.on('error', () => {})
    const create = refusing.createConfirmChannel.bind(refusing)
    let refusals = 0
    // The server refuses a message when a queue is full.
    refusing.createConfirmChannel = async () => {
      const opened = await create()
      const send = opened.sendToQueue.bind(opened)
      opened.sendToQueue = (to, content, given, confirm) => {
        refusals += 1
        if (refusals > 1) return send(to, content, given, confirm)
        confirm?.(new Error('message nacked'), {} as never)
        return true
      }
      return opened
    }
    const subscription = await start(
      ({ data: { order } }, attempt) => {
        ran.push(order)
        if (order === 'm-1' && attempt === 1) throw new Error('not yet')
      },
      { connection: refusing } as never,
    )
    await eventually(() => expect(ran.toSorted()).toEqual(['m-1', 'm-1', 'm-2']))
    await eventually(async () => expect(await broker.waiting()).toBe(0))
    await subscription.stop()
    await refusing.close()
  })

  it('runs nothing twice when the connection is lost between the copy that waits and its acknowledgement', async () => {
    const wire = await startTcpProxy(server.url)
    const own = await connect(wire.through(server.url), { recovery: { initialDelay: 50, maxDelay: 50 } })
    own.on('error', () => {})
    const attempts: number[] = []
    const handler = (_: unknown, attempt: number) => {
      attempts.push(attempt)
      if (attempt === 1) throw new Error('not yet')
    }
    const subscription = await start(handler, { connection: own } as never)
    const cut = wire.cutAt('lost-copy', 'reply')
    await publish('m-1', { order: 'lost-copy' })
    await cut
    await eventually(() => expect(attempts).toEqual([1, 2]))
    // The copy and the message itself: the second of them is a duplicate.
    await eventually(async () => expect(await broker.waiting()).toBe(0))
    expect(attempts).toEqual([1, 2])
    await subscription.stop()
    await own.close()
    await wire.close()
  })

  it('stops although its broker does not answer any more', { timeout: 30_000 }, async () => {
    const wire = await startTcpProxy(server.url)
    const own = await connect(wire.through(server.url))
    own.on('error', () => {})
    const subscription = await start(() => undefined, { connection: own } as never)
    wire.silence()
    expect(await subscription.stop({ timeoutMs: 1_000 })).toEqual({ drained: true })
    wire.mend()
    await wire.close()
  })

  it('refuses a queue that does not exist', async () => {
    const own = await connect(server.url)
    own.on('error', () => {})
    await expect(start(() => undefined, { connection: own, queue: 'consumer-nowhere' } as never)).rejects.toThrow(
      'NOT_FOUND',
    )
    await own.close()
  })
})

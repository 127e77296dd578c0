import { AssignerProtocol, type Consumer, Kafka, logLevel, type Message, Partitioners, type Producer } from 'kafkajs'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeKafka } from '../../../../../test/servers/kafka/describe-kafka.ts'
import {
  type ConsumerBroker,
  eventually,
  type Order,
  type Subscription,
} from '../../../test/consumers/consumer-broker.ts'
import { defineConsumerCases } from '../../../test/consumers/consumer.cases.ts'
import { kafkaLag } from '../../../test/consumers/brokers/kafka-lag.ts'
import type { GuardedOperation } from '../../engine/operation.ts'
import { inbox, type InboxMessage, parkedMessages } from '../../inbox/index.ts'
import { consume, type KafkaConsumeOptions } from './index.ts'

/** When a member comes or goes, the brokers of the tests wait for nearly as long as a session lasts. */
const group = { maxWaitTimeInMs: 200, heartbeatInterval: 200, sessionTimeout: 4_000 }

describeKafka('a consumer of Kafka', own => {
  let kafka: Kafka
  let producer: Producer
  let topics = 0
  let topic = ''
  let groupId = ''
  const open: Consumer[] = []
  beforeAll(async () => {
    kafka = new Kafka({ brokers: [...own.server.brokers], logLevel: logLevel.NOTHING })
    producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
  })
  afterAll(() => producer.disconnect())
  beforeEach(async () => {
    topic = `orders-${(topics += 1)}`
    groupId = `billing-${topics}`
    // The first request creates the topic, and is told to try again.
    await expect
      .poll(() => producer.send({ topic, messages: [] }).then(() => 'there', String), { timeout: 10_000 })
      .toBe('there')
  })
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect()
  })

  async function member(over: object = {}): Promise<Consumer> {
    const consumer = kafka.consumer({ groupId, ...group, ...over })
    open.push(consumer)
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    return consumer
  }

  /** Messages of one key are in one partition. */
  async function publish(id: string | undefined, data: Order, key = 'one'): Promise<void> {
    await producer.send({ topic, messages: [recordOf(id, data, key)] })
  }
  /** The brokers of the tests hand out what was sent together as one batch, and nothing else. */
  async function publishTogether(...ids: string[]): Promise<void> {
    await producer.send({ topic, messages: ids.map(id => recordOf(id, { order: id }, 'one')) })
  }

  const waiting = () => kafkaLag(kafka, topic, groupId)

  const broker: ConsumerBroker = {
    publish,
    waiting,
    async consume(operation, { onUnknown: _, ...options }, handler) {
      return consume(operation, { from: await member(), consumer: groupId, ...options }, handler)
    },
  }
  const { latchkey, start, allSettled } = defineConsumerCases(() => broker)

  /** One that the test itself stops. */
  async function startOn(
    from: Consumer,
    handler: (message: InboxMessage<Order>) => unknown,
    options: Partial<KafkaConsumeOptions> & { readonly operation?: GuardedOperation<unknown> } = {},
  ): Promise<Subscription> {
    const { operation = rerun(), ...given } = options
    return consume(operation, { from, consumer: groupId, backoffMs: 20, ...given }, (_, message: InboxMessage<Order>) =>
      handler(message),
    )
  }
  const rerun = (leaseMs = 10_000) => latchkey().guarded('orders.book', { onFailure: 'rerun', leaseMs })

  it('names the group and the position of what it parked', async () => {
    await publish(undefined, { order: 'none' })
    await start(() => undefined)
    await allSettled()
    const { messages } = await parkedMessages(latchkey()).list({ limit: 10 })
    expect(messages).toMatchObject([{ consumer: groupId, source: topic }])
    expect(messages[0]?.position).toMatch(new RegExp(`^${topic}/\\d/0$`))
  })

  it('commits a position after the outcome of its message is durable, not before', async () => {
    await publishTogether('m-1', 'm-2', 'm-3')
    const open: number[] = []
    await start(async () => void open.push(await waiting()))
    await allSettled()
    expect(open).toEqual([3, 2, 1])
  })

  it('runs the messages behind one that is retried after it, and those of other partitions meanwhile', async () => {
    await publishTogether('m-1', 'm-2', 'm-3')
    const elsewhere = [...'abcdefgh'].map(key => `other-${key}`)
    for (const order of elsewhere) await publish(order, { order }, order)
    const ran: string[] = []
    // Longer than a consumer waits in place.
    const options = { backoffMs: 2_500, attemptsMax: 2 }
    await start(({ data: { order } }, attempt) => {
      ran.push(`${order}/${attempt}`)
      if (order === 'm-1') throw new Error('out of stock')
    }, options)
    await allSettled()
    expect(ran.filter(each => each.startsWith('m-'))).toEqual(['m-1/1', 'm-1/2', 'm-2/1', 'm-3/1'])
    expect(ran.filter(each => each.startsWith('other-'))).toHaveLength(elsewhere.length)
    expect(ran.indexOf('m-1/2')).toBeGreaterThan(elsewhere.length / 2)
  })

  it('knows a message by its header message-id, within its topic, and its position by choice only', async () => {
    const value = '{"order":"m-1"}'
    const headers = { 'message-id': 'm-1', 'content-type': 'application/json' }
    for (let sent = 0; sent < 3; sent += 1) await producer.send({ topic, messages: [{ key: 'one', value, headers }] })
    const sources: string[] = []
    const byMessage = await startOn(await member(), ({ source, id }) => sources.push(`${source} ${id}`))
    await allSettled()
    await byMessage.stop()
    expect(sources).toEqual([`${topic} m-1`])
    groupId += '-by-position'
    const ids: (string | undefined)[] = []
    const byPosition = await startOn(await member(), ({ id }) => ids.push(id), { identity: 'position' })
    await allSettled()
    await byPosition.stop()
    expect(ids.map(id => id?.split('/').at(-1))).toEqual(['0', '1', '2'])
  })

  it('is not held up by a message that is nested deeper than it could be written down', async () => {
    const value = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const headers = { 'message-id': 'deep', 'content-type': 'application/json' }
    await producer.send({ topic, messages: [{ key: 'one', value, headers }, recordOf('m-1', { order: 'm-1' }, 'one')] })
    const ran: (string | undefined)[] = []
    await start(({ id }) => ran.push(id))
    await allSettled()
    expect(ran).toEqual(['deep', 'm-1'])
  })

  it('finishes a handler in whose middle the group is rebalanced, and runs no message twice', async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `m-${index}`)
    for (const id of ids) await publish(id, { order: id }, id)
    const ran: string[] = []
    let release = () => {}
    const released = new Promise<void>(resolve => (release = resolve))
    const handler = async ({ data: { order } }: InboxMessage<Order>) => {
      ran.push(order)
      await released
    }
    // A beat every 200 ms: the first member hears of the second while its handler runs.
    const options = { operation: rerun(600) }
    const first = await member()
    let rebalanced = 0
    first.on(first.events.REBALANCING, () => void (rebalanced += 1))
    const one = await startOn(first, handler, options)
    await eventually(() => expect(ran).toHaveLength(1))
    const second = member().then(from => startOn(from, handler, options))
    await new Promise(resolve => setTimeout(resolve, 2_000))
    release()
    const other = await second
    await allSettled()
    expect(rebalanced).toBeGreaterThan(0)
    expect(ran.toSorted()).toEqual(ids.toSorted())
    await one.stop()
    await other.stop()
  })

  it('does not count a commit that came too late, and the next member finds the outcome', async () => {
    await publish('m-1', { order: 'm-1' })
    let runs = 0
    let release = () => {}
    const released = new Promise<void>(resolve => (release = resolve))
    const handler = () => ((runs += 1), released)
    // No heartbeat within its session: the group puts the first member out while its handler runs.
    const one = await startOn(await member(), handler, { operation: rerun(60_000) })
    await eventually(() => expect(runs).toBe(1))
    const options = { operation: rerun(60_000), backoffMsMax: 300 }
    const other = await startOn(await member(), handler, options)
    expect(await waiting()).toBe(1)
    release()
    await allSettled()
    expect(runs).toBe(1)
    await one.stop()
    await other.stop()
  })

  it('waits for a delivery that is under way elsewhere, without asking again and again', async () => {
    let release = () => {}
    const released = new Promise<void>(resolve => (release = resolve))
    const operation = rerun()
    const message = { source: '/shop', id: 'm-1', data: { order: 'm-1' }, contentType: 'application/json' }
    const elsewhere = inbox(operation, { consumer: groupId }).receive(message, () => released)
    await publishTogether('m-1', 'm-2')
    const from = await member()
    let batches = 0
    from.on(from.events.START_BATCH_PROCESS, () => void (batches += 1))
    const ran: string[] = []
    const subscription = await startOn(from, ({ data }) => ran.push(data.order), { backoffMs: 500 })
    await new Promise(resolve => setTimeout(resolve, 3_000))
    expect(ran).toEqual([])
    expect(batches).toBeLessThan(5)
    release()
    expect(await elsewhere).toEqual({ kind: 'done' })
    await allSettled()
    expect(ran).toEqual(['m-2'])
    await subscription.stop()
  })

  it.each(['park', 'block'] as const)('does with an unknown message as it is told: %s', async onUnknown => {
    const operation = latchkey().guarded('orders.hold', { onFailure: 'hold' })
    await publishTogether('m-1', 'm-2')
    const ran: string[] = []
    const handler = ({ data: { order } }: InboxMessage<Order>) => {
      ran.push(order)
      if (order === 'm-1') throw new Error('the answer was lost')
    }
    const subscription = await startOn(await member(), handler, { operation, onUnknown })
    if (onUnknown === 'park') await allSettled()
    else await new Promise(resolve => setTimeout(resolve, 3_000))
    expect(ran).toEqual(onUnknown === 'park' ? ['m-1', 'm-2'] : ['m-1'])
    expect(await waiting()).toBe(onUnknown === 'park' ? 0 : 2)
    await subscription.stop()
  })

  it('runs no message that is read again from another place', async () => {
    await publishTogether('m-1', 'm-2', 'm-3')
    const from = await member()
    const ran: string[] = []
    const subscription = await startOn(from, ({ data: { order }, position }) => {
      ran.push(order)
      const partition = Number(position?.split('/')[1])
      if (order === 'm-1') from.seek({ topic, partition, offset: '2' })
    })
    await allSettled()
    expect(ran).toEqual(['m-1', 'm-3'])
    await subscription.stop()
  })

  it('starts its client again when that has given up', async () => {
    await publish('m-1', { order: 'm-1' })
    let assigned = 0
    // An error that kafkajs does not recover from.
    const failing = () => ({
      name: 'failing-once',
      version: 1,
      async assign({ members }: { members: { memberId: string; memberMetadata: Buffer }[] }) {
        if ((assigned += 1) === 1) throw new TypeError('not a partition')
        return members.map(({ memberId }) => ({ memberId, memberAssignment: assignmentOf({ [topic]: [0, 1, 2, 3] }) }))
      },
      protocol: ({ topics: all }: { topics: string[] }) => ({ name: 'failing-once', metadata: metadataOf(all) }),
    })
    const from = await member({ partitionAssigners: [failing] })
    const restarts: boolean[] = []
    from.on(from.events.CRASH, ({ payload }) => void restarts.push(payload.restart))
    const ran: string[] = []
    const subscription = await startOn(from, ({ data }) => ran.push(data.order))
    await allSettled()
    expect(restarts).toEqual([false])
    expect(ran).toEqual(['m-1'])
    await subscription.stop()
  })

  it('refuses options that are none, and a missing handler', async () => {
    const from = await member()
    const wrong: [object, string][] = [
      [{ consumer: 'billing' }, 'needs from'],
      [{ from }, "consumer: 'billing'"],
      [{ from: {}, consumer: 'billing' }, 'from must be a consumer of kafkajs'],
      [{ from, consumer: 'billing', queue: 'x' }, 'unknown option queue'],
      [{ from, consumer: 'billing', onUnknown: 'retry' }, 'onUnknown'],
    ]
    for (const [options, message] of wrong) {
      await expect(consume(rerun(), options as never, () => undefined)).rejects.toThrow(message)
    }
    await expect(consume(rerun(), { from, consumer: 'billing' }, undefined as never)).rejects.toThrow('needs a handler')
  })
})

function recordOf(id: string | undefined, data: Order, key: string): Message {
  const event = id === undefined ? {} : { ce_source: '/shop', ce_id: id }
  return { key, value: JSON.stringify(data), headers: { ...event, 'content-type': 'application/json' } }
}

const noData = Buffer.alloc(0)
const assignmentOf = (assignment: Record<string, number[]>) =>
  AssignerProtocol.MemberAssignment.encode({ version: 1, assignment, userData: noData })
const metadataOf = (topics: string[]) =>
  AssignerProtocol.MemberMetadata.encode({ version: 1, topics, userData: noData })

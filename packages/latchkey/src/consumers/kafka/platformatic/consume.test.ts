/** The stream and the messages are the client's own. Its requests are answered here: the brokers of the tests speak no version of the protocol that it knows. */
import { Consumer, MessagesStream } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually, type Order } from '../../../../test/consumers/consumer-broker.ts'
import { createLatchkey, type Latchkey } from '../../../index.ts'
import { type InboxMessage, parkedMessages } from '../../../inbox/index.ts'
import { silentTelemetry } from '../../../ports/telemetry.ts'
import { memoryStore, type MemoryTx } from '../../../stores/memory/index.ts'
import { consume, type PlatformaticConsumeOptions } from './index.ts'

const topic = 'orders'

interface Stored {
  readonly id: string | undefined
  readonly order: string
}

/** Two partitions. */
class AnsweredConsumer extends Consumer {
  readonly partitions: Stored[][] = [[], []]
  readonly committed = [-1n, -1n]
  commits: string[] = []
  fails = 0

  constructor() {
    super({ clientId: 'test', groupId: 'billing', bootstrapBrokers: ['127.0.0.1:1'], retries: false })
    this.assignments = [{ topic, partitions: [0, 1] }]
    this.topics.track(topic)
  }

  override consume(options: never): never {
    const stream = new MessagesStream(this, options)
    return Promise.resolve(stream) as never
  }

  override metadata(_: unknown, callback?: unknown): never {
    const partition = { leader: 1, leaderEpoch: 0, replicas: [1], isr: [1], offlineReplicas: [] }
    const topics = new Map([
      [topic, { id: 'id', partitions: [partition, partition], partitionsCount: 2, lastUpdate: 0 }],
    ])
    return answer(callback, { id: 'c', brokers: new Map(), topics, lastUpdate: 0 })
  }

  override listOffsets(_: unknown, callback?: unknown): never {
    return answer(callback, new Map([[topic, [0n, 0n]]]))
  }

  override listCommittedOffsets(_: unknown, callback?: unknown): never {
    return answer(callback, new Map([[topic, [...this.committed]]]))
  }

  override commit(
    { offsets }: { offsets: readonly { partition: number; offset: bigint }[] },
    callback?: unknown,
  ): never {
    this.fails -= 1
    if (this.fails >= 0) return answer(callback, new Error('not the coordinator'))
    for (const { partition, offset } of offsets) {
      this.committed[partition] = offset
      this.commits.push(`${partition}/${offset}`)
    }
    return answer(callback, undefined)
  }

  override fetch({ topics }: { topics: readonly Asked[] }, callback?: unknown): never {
    const responses = topics.map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map(({ partition, fetchOffset }) => ({
        partitionIndex: partition,
        records: batchFrom(this.partitions[partition] ?? [], Number(fetchOffset)),
      })),
    }))
    return answer(callback, { responses }, 20)
  }
}

interface Asked {
  readonly topicId: string
  readonly partitions: readonly { readonly partition: number; readonly fetchOffset: bigint }[]
}

function batchFrom(all: readonly Stored[], from: number): object[] {
  const records = all.slice(from).map(({ id, order }, index) => ({
    ...{ offsetDelta: index, timestampDelta: 0n, key: null, value: Buffer.from(JSON.stringify({ order })) },
    headers: new Map(
      Object.entries({ 'content-type': 'application/json', ...(id === undefined ? {} : { 'message-id': id }) }).map(
        ([name, value]) => [Buffer.from(name), Buffer.from(value)] as const,
      ),
    ),
  }))
  if (records.length === 0) return []
  return [
    { firstOffset: BigInt(from), firstTimestamp: 0n, lastOffsetDelta: records.length - 1, attributes: 0, records },
  ]
}

/** As the client does: to a callback, or by a promise. */
function answer(callback: unknown, value: unknown, afterMs = 0): never {
  const error = value instanceof Error ? value : null
  if (typeof callback === 'function') setTimeout(() => callback(error, value), afterMs)
  return Promise.resolve(value) as never
}

describe('a consumer of Kafka on @platformatic/kafka', () => {
  let latchkey: Latchkey<MemoryTx, unknown>
  let from: AnsweredConsumer
  const open: { stop(options: { timeoutMs: number }): Promise<unknown> }[] = []
  beforeEach(() => {
    latchkey = createLatchkey({
      ...{ store: memoryStore(), scope: () => 'acme', telemetry: silentTelemetry, maintenance: false },
    })
    from = new AnsweredConsumer()
  })
  afterEach(async () => {
    for (const each of open.splice(0)) await each.stop({ timeoutMs: 1_000 })
    await new Promise<void>(resolve => from.close(true, () => resolve()))
    await latchkey.close()
  })

  async function start(
    handler: (message: InboxMessage<Order>) => unknown,
    options: Partial<PlatformaticConsumeOptions> = {},
  ): Promise<{ stop(options?: { timeoutMs?: number }): Promise<{ drained: boolean }> }> {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun' })
    const given = { from, topics: [topic], backoffMs: 20, ...options }
    const subscription = await consume(operation, given, (_, message: InboxMessage<Order>) => handler(message))
    open.push(subscription)
    return subscription
  }
  const stored = (...orders: string[]) => orders.map(order => ({ id: order, order }))

  it('runs each message once, in the order of its partition, and commits the position behind it', async () => {
    from.partitions[0] = stored('m-1', 'm-2', 'm-1', 'm-3')
    from.partitions[1] = stored('n-1', 'n-2')
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order), { concurrency: 2 })
    await eventually(() => expect(from.committed).toEqual([4n, 2n]))
    expect(ran.filter(order => order.startsWith('m-'))).toEqual(['m-1', 'm-2', 'm-3'])
    expect(ran.filter(order => order.startsWith('n-'))).toEqual(['n-1', 'n-2'])
    from.partitions[0].push(...stored('m-4'))
    await eventually(() => expect(from.committed).toEqual([5n, 2n]))
  })

  it('commits after the outcome is durable, and begins behind what its group has committed', async () => {
    from.partitions[0] = stored('m-1', 'm-2', 'm-3')
    from.committed[0] = 1n
    const open: (bigint | undefined)[] = []
    const ran: string[] = []
    await start(({ data }) => {
      open.push(from.committed[0])
      ran.push(data.order)
    })
    await eventually(() => expect(from.committed[0]).toBe(3n))
    expect(ran).toEqual(['m-2', 'm-3'])
    expect(open).toEqual([1n, 2n])
  })

  it('runs the messages behind one that is retried after it, and those of other partitions until one of its own comes', async () => {
    from.partitions[0] = stored('m-1', 'm-2')
    from.partitions[1] = stored('n-1', 'n-2')
    // The stream is read from one partition after the other.
    from.partitions.reverse()
    const ran: string[] = []
    let fails = 2
    await start(
      ({ data: { order } }) => {
        ran.push(order)
        if (order === 'n-2' && (fails -= 1) >= 0) throw new Error('out of stock')
      },
      { concurrency: 2, backoffMs: 500 },
    )
    await eventually(() => expect(ran).toEqual(['n-1', 'n-2', 'm-1', 'm-2']))
    from.partitions[0]?.push(...stored('n-3'))
    await eventually(() => expect(from.committed).toEqual([3n, 2n]))
    expect(ran).toEqual(['n-1', 'n-2', 'm-1', 'm-2', 'n-2', 'n-2', 'n-3'])
  })

  it('parks a message without an id, and one that fails as often as it may, and goes on', async () => {
    from.partitions[0] = [{ id: undefined, order: 'none' }, ...stored('m-1', 'm-2')]
    const ran: string[] = []
    await start(
      ({ data: { order } }) => {
        ran.push(order)
        if (order === 'm-1') throw new Error('out of stock')
      },
      { attemptsMax: 2 },
    )
    await eventually(() => expect(from.committed[0]).toBe(3n))
    expect(ran).toEqual(['m-1', 'm-1', 'm-2'])
    const { messages } = await parkedMessages(latchkey).list({ limit: 10 })
    expect(messages).toMatchObject([
      { consumer: 'billing', source: topic, cause: 'missing-key', position: 'orders/0/0' },
      { cause: 'attempts' },
    ])
  })

  it('goes on after a commit that failed, which the next one covers', async () => {
    from.partitions[0] = stored('m-1', 'm-2')
    from.fails = 1
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order))
    await eventually(() => expect(from.committed[0]).toBe(2n))
    expect(ran).toEqual(['m-1', 'm-2'])
    expect(from.commits).toEqual(['0/2'])
  })

  it('finishes what is under way when it is stopped, and takes nothing more', async () => {
    from.partitions[0] = stored('m-1', 'm-2')
    let release = () => {}
    const ran: string[] = []
    const subscription = await start(({ data }) => {
      ran.push(data.order)
      return new Promise<void>(resolve => (release = resolve))
    })
    await eventually(() => expect(ran).toEqual(['m-1']))
    const stopped = subscription.stop()
    release()
    expect(await stopped).toEqual({ drained: true })
    expect(from.commits).toEqual(['0/1'])
  })

  it('refuses options that are none', async () => {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun' })
    const wrong: [object, string][] = [
      [{ topics: [topic] }, 'needs from'],
      [{ from, topics: [] }, 'topics'],
      [{ from: {}, topics: [topic] }, 'a consumer of @platformatic/kafka'],
      [{ from, topics: [topic], group: 'x' }, 'unknown option group'],
    ]
    for (const [options, message] of wrong) {
      await expect(consume(operation, options as never, () => undefined)).rejects.toThrow(message)
    }
  })
})

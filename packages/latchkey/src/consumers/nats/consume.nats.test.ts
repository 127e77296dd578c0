import { type Consumer, jetstream, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, nanos, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { describeNats } from '../../../../../test/servers/nats/describe-nats.ts'
import { createLatchkey, type Latchkey } from '../../index.ts'
import { type InboxMessage, parkedMessages } from '../../inbox/index.ts'
import { silentTelemetry } from '../../ports/telemetry.ts'
import { memoryStore, type MemoryTx } from '../../stores/memory/index.ts'
import { consume, type NatsConsumeOptions, type NatsSubscription } from './index.ts'

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000, interval: 50 })

describeNats('a consumer of NATS', own => {
  let connection: NatsConnection
  let manager: JetStreamManager
  let latchkey: Latchkey<MemoryTx, unknown>
  const open: NatsSubscription[] = []
  beforeAll(async () => {
    connection = await connect({ servers: own.server.url })
    manager = await jetstreamManager(connection)
  })
  afterAll(() => connection.close())
  beforeEach(async () => {
    await manager.streams.delete('ORDERS').catch(() => undefined)
    await manager.streams.add({ name: 'ORDERS', subjects: ['orders'] })
    latchkey = createLatchkey({
      store: memoryStore(),
      scope: () => 'acme',
      telemetry: silentTelemetry,
      maintenance: false,
    })
  })
  afterEach(async () => {
    for (const each of open.splice(0)) await each.stop({ timeoutMs: 1_000 })
    await latchkey.close()
  })

  async function durable(over: object = {}): Promise<Consumer> {
    const config = { durable_name: 'billing', ack_policy: 'explicit', ack_wait: nanos(30_000), max_ack_pending: 100 }
    await manager.consumers.add('ORDERS', { ...config, ...over } as never)
    return jetstream(connection).consumers.get('ORDERS', 'billing')
  }

  /** An event of a shop, with an id of its own where one is given. */
  async function publish(id: string | undefined, order: unknown = { order: id }): Promise<void> {
    const all = headers()
    if (id !== undefined) {
      all.set('ce-source', '/shop')
      all.set('ce-id', id)
    }
    all.set('content-type', 'application/json')
    await jetstream(connection).publish('orders', JSON.stringify(order), { headers: all })
  }

  const waiting = async () => {
    const { num_pending: pending, num_ack_pending: unacknowledged } = await manager.consumers.info('ORDERS', 'billing')
    return pending + unacknowledged
  }
  const allSettled = () => eventually(async () => expect(await waiting()).toBe(0))

  type Handler = (message: InboxMessage<{ order: string }>, attempt: number) => unknown
  async function start(handler: Handler, over: Partial<NatsConsumeOptions> = {}): Promise<NatsSubscription> {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun', leaseMs: 10_000 })
    const options = { from: await durable(), backoffMs: 20, ...over }
    const started = await consume(operation, options, (x, message: InboxMessage<{ order: string }>) =>
      handler(message, x.attempt),
    )
    open.push(started)
    return started
  }

  it('runs each message once, however often its producer sends it', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `m-${index}`)
    for (const id of [...ids, ...ids]) await publish(id)
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order))
    await allSettled()
    expect(ran).toEqual(ids)
  })

  it('parks a message without an id, and one with the id of another, and goes on', async () => {
    await publish(undefined)
    await publish('m-1')
    await publish('m-1', { order: 'another' })
    await publish('m-2')
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order))
    await allSettled()
    expect(ran).toEqual(['m-1', 'm-2'])
    const { messages } = await parkedMessages(latchkey).list({ limit: 10 })
    expect(messages.map(({ cause, consumer, position }) => ({ cause, consumer, position }))).toEqual([
      { cause: 'missing-key', consumer: 'billing', position: 'ORDERS/1' },
      { cause: 'mismatch', consumer: 'billing', position: 'ORDERS/3' },
    ])
  })

  it('has a message that failed delivered again, after its wait, and parks it in the end', async () => {
    await publish('m-1')
    await publish('m-2')
    const runs: { readonly order: string; readonly attempt: number; readonly atMs: number }[] = []
    await start(
      ({ data: { order } }, attempt) => {
        runs.push({ order, attempt, atMs: performance.now() })
        if (order === 'm-1') throw new Error('out of stock')
      },
      { attemptsMax: 3, backoffMs: 300 },
    )
    await allSettled()
    const failed = runs.filter(({ order }) => order === 'm-1')
    expect(failed.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    const [first = 0, second = 0, third = 0] = failed.map(({ atMs }) => atMs)
    // The server counts from when it hears of it.
    expect(second - first).toBeGreaterThan(290)
    expect(third - second).toBeGreaterThan(590)
    expect(runs.filter(({ order }) => order === 'm-2')).toHaveLength(1)
    expect((await parkedMessages(latchkey).list({ limit: 10 })).messages).toMatchObject([{ cause: 'attempts' }])
  })

  it('runs a parked message that an operator has marked', async () => {
    await publish(undefined, { order: 'repaired' })
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order))
    await allSettled()
    const parked = parkedMessages(latchkey)
    const [message] = (await parked.list({ limit: 10 })).messages
    await parked.redrive(message?.id ?? '', { by: 'ops', reason: 'it was checked' }, { as: 'repaired-1' })
    await eventually(() => expect(ran).toEqual(['repaired']))
    await eventually(async () => expect((await parked.list({ limit: 10 })).messages).toEqual([]))
  })

  it('is not delivered a message again while it runs, however long that takes', async () => {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun', leaseMs: 600 })
    const from = await durable({ ack_wait: nanos(600) })
    let runs = 0
    // There is room for a second delivery.
    const started = await consume(operation, { from, concurrency: 2 }, async () => {
      runs += 1
      await new Promise(resolve => setTimeout(resolve, 2_000))
    })
    open.push(started)
    await publish('m-1')
    await allSettled()
    expect(runs).toBe(1)
    const { delivered } = await manager.consumers.info('ORDERS', 'billing')
    expect(delivered.consumer_seq).toBe(1)
  })

  it('finishes what is under way when it is stopped, and takes nothing more', async () => {
    for (const id of ['m-1', 'm-2', 'm-3']) await publish(id)
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
    expect(ran).toEqual(['m-1'])
    const { ack_floor: acknowledged } = await manager.consumers.info('ORDERS', 'billing')
    expect(acknowledged.stream_seq).toBe(1)
  })

  it('does not wait longer than it may for what is under way', async () => {
    await publish('m-1')
    let isRunning = false
    let release = () => {}
    const subscription = await start(() => {
      isRunning = true
      return new Promise<void>(resolve => (release = resolve))
    })
    await eventually(() => expect(isRunning).toBe(true))
    expect(await subscription.stop({ timeoutMs: 100 })).toEqual({ drained: false })
    release()
  })

  it.each([
    [{ ack_policy: 'all' }, 'ack_policy all'],
    [{ ack_wait: nanos(5_000) }, 'ack_wait of 5000 ms, and the operation a leaseMs of 10000'],
    [{ max_deliver: 5 }, 'max_deliver 5'],
  ])('refuses a consumer with %j', async (over, message) => {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun', leaseMs: 10_000 })
    const from = await durable(over)
    await expect(consume(operation, { from }, () => undefined)).rejects.toThrow(message)
  })

  it('refuses options that are none, and a missing handler', async () => {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun' })
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

/** What a consumer must do on every broker, with a real one. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Latchkey } from '../../src/index.ts'
import { inbox, type InboxMessage, type InboxOptions, parkedMessages } from '../../src/inbox/index.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore, type MemoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import {
  allSettledBy,
  type ConsumerBroker,
  eventually,
  type Order,
  quiet,
  type Subscription,
} from './consumer-broker.ts'
import { defineDecisions } from './decision.cases.ts'

export interface ConsumerCases {
  readonly latchkey: () => Latchkey<MemoryTx, unknown>
  readonly start: (
    handler: (message: InboxMessage<Order>, attempt: number) => unknown,
    options?: Partial<InboxOptions>,
  ) => Promise<Subscription>
  readonly allSettled: () => Promise<void>
}

export function defineConsumerCases(broker: () => ConsumerBroker): ConsumerCases {
  let store: MemoryStore
  let latchkey: Latchkey<MemoryTx, unknown>
  const open: Subscription[] = []
  beforeEach(() => {
    store = memoryStore()
    latchkey = quiet(store)
  })
  afterEach(async () => {
    for (const each of open.splice(0)) await each.stop({ timeoutMs: 1_000 })
    await latchkey.close()
  })
  const start: ConsumerCases['start'] = async (handler, options = {}) => {
    const operation = latchkey.guarded('orders.book', { onFailure: 'rerun', leaseMs: 10_000 })
    const started = await broker().consume(operation, { backoffMs: 20, ...options }, (x, message) =>
      handler(message, x.attempt),
    )
    open.push(started)
    return started
  }
  const allSettled = () => allSettledBy(broker())
  const cases = { latchkey: () => latchkey, start, allSettled }
  defineRuns(broker, cases)
  defineStops(broker, cases)
  defineFaults(broker, () => store)
  defineDecisions(broker, () => store)
  return cases
}

function defineRuns(broker: () => ConsumerBroker, { latchkey, start, allSettled }: ConsumerCases): void {
  const publish = (id: string | undefined, order = id ?? 'none') => broker().publish(id, { order })

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
    await publish('m-1', 'another')
    await publish('m-2')
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order))
    await allSettled()
    expect(ran).toEqual(['m-1', 'm-2'])
    const { messages } = await parkedMessages(latchkey()).list({ limit: 10 })
    expect(messages.map(({ cause }) => cause)).toEqual(['missing-key', 'mismatch'])
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
    expect((await parkedMessages(latchkey()).list({ limit: 10 })).messages).toMatchObject([{ cause: 'attempts' }])
  })

  it('runs a parked message that an operator has marked', async () => {
    await publish(undefined, 'repaired')
    const ran: string[] = []
    await start(({ data }) => ran.push(data.order))
    await allSettled()
    const parked = parkedMessages(latchkey())
    await eventually(async () => expect((await parked.list({ limit: 10 })).messages).toHaveLength(1))
    const [message] = (await parked.list({ limit: 10 })).messages
    await parked.redrive(message?.id ?? '', { by: 'ops', reason: 'it was checked' }, { as: 'repaired-1' })
    await eventually(() => expect(ran).toEqual(['repaired']))
    await eventually(async () => expect((await parked.list({ limit: 10 })).messages).toEqual([]))
  })
}

function defineStops(broker: () => ConsumerBroker, { start }: ConsumerCases): void {
  it('finishes what is under way when it is stopped, and takes nothing more', async () => {
    for (const order of ['m-1', 'm-2', 'm-3']) await broker().publish(order, { order })
    let release = () => {}
    const ran: string[] = []
    const subscription = await start(async ({ data }) => {
      ran.push(data.order)
      await new Promise<void>(resolve => (release = resolve))
      ran.push('ended')
    })
    await eventually(() => expect(ran).toEqual(['m-1']))
    const stopped = subscription.stop()
    setTimeout(release, 300)
    expect(await stopped).toEqual({ drained: true })
    expect(ran).toEqual(['m-1', 'ended'])
    await eventually(async () => expect(await broker().waiting()).toBe(2))
  })

  it('does not wait longer than it may for what is under way', async () => {
    await broker().publish('m-1', { order: 'm-1' })
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
}

function defineFaults(broker: () => ConsumerBroker, store: () => MemoryStore): void {
  const rerun = { onFailure: 'rerun', leaseMs: 500 } as const

  it('does not acknowledge for an owner that came too late: the next one may fail', async () => {
    // A process that was suspended: its leases are not renewed.
    const late = quiet({ ...store(), heartbeat: () => Promise.reject(new Error('suspended')) })
    const runs: { readonly message: InboxMessage<Order>; readonly end: () => void }[] = []
    const run = (message: InboxMessage<Order>) => new Promise<void>(end => runs.push({ message, end }))
    const options = { consumer: 'late', backoffMs: 20 }
    const subscription = await broker().consume(late.guarded('orders.book', rerun), options, (_, message) =>
      runs.length === 0 ? run(message) : void runs.push({ message, end: () => undefined }),
    )
    await broker().publish('m-1', { order: 'm-1' })
    await eventually(() => expect(runs).toHaveLength(1))
    const [first] = runs
    if (first === undefined) return
    let fail = () => {}
    const failing = new Promise<void>((_, reject) => (fail = () => reject(new Error('out of stock'))))
    const next = inbox(quiet(store()).guarded('orders.book', rerun), { consumer: 'late', backoffMs: 20 })
    let isTaken = false
    const takenOver = (async () => {
      while (!isTaken) {
        await next.receive(first.message, () => ((isTaken = true), failing))
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    })()
    await eventually(() => expect(isTaken).toBe(true))
    first.end()
    await new Promise(resolve => setTimeout(resolve, 300))
    fail()
    await takenOver
    await eventually(() => expect(runs).toHaveLength(2))
    await allSettledBy(broker())
    await subscription.stop({ timeoutMs: 1_000 })
    await late.close()
  })

  it('takes no more messages while its store is down, and runs each of them once when it is back', async () => {
    let isDown = true
    let asked = 0
    const claim: Store['claim'] = request => {
      asked += 1
      return isDown ? Promise.reject(new Error('connection refused')) : store().claim(request)
    }
    const shaky = quiet({ ...store(), claim })
    const ids = Array.from({ length: 20 }, (_, index) => `m-${index}`)
    for (const id of ids) await broker().publish(id, { order: id })
    const ran: string[] = []
    const operation = shaky.guarded('orders.book', rerun)
    const subscription = await broker().consume(operation, { backoffMs: 600 }, (_, { data }) => ran.push(data.order))
    await eventually(() => expect(asked).toBeGreaterThan(0))
    await new Promise(resolve => setTimeout(resolve, 2_000))
    // One after the other, after as long a wait: not all of them, and none again at once.
    expect(asked).toBeLessThan(10)
    isDown = false
    await allSettledBy(broker())
    expect(ran.toSorted()).toEqual(ids.toSorted())
    await subscription.stop({ timeoutMs: 1_000 })
    await shaky.close()
  })
}

import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRelay, functionTarget, type RelayOptions, type RelayTurn } from '../../src/outbox/index.ts'
import { misconfigured } from '../../src/ports/errors.ts'
import type { DeliveryOptions, DeliveryResult, RelayTiming } from '../../src/ports/target.ts'
import type { Batch, Message, Outbox } from '../../src/ports/outbox.ts'
import { type OutboxFixture, message, openFixture } from './fixture.ts'

let fixture: OutboxFixture
beforeEach(async () => {
  fixture = await openFixture()
})
afterEach(() => fixture.close())

type Deliver = (message: Message, options: DeliveryOptions) => DeliveryResult | Promise<DeliveryResult>
const takesAll: Deliver = () => ({ kind: 'delivered' })

function relay(deliver: Deliver, over: Partial<RelayOptions> = {}) {
  return createRelay({ outbox: fixture.store.outbox, targets: { orders: functionTarget(deliver) }, ...over })
}

/** Runs turns until nothing is left to do now. */
async function drain(turns: { relayOnce(): Promise<RelayTurn> }): Promise<readonly RelayTurn[]> {
  const all: RelayTurn[] = []
  for (;;) {
    const turn = await turns.relayOnce()
    if (turn.kind === 'idle') return all
    all.push(turn)
  }
}

it('is idle when there is nothing to do', async () => {
  expect(await relay(takesAll).relayOnce()).toEqual({ kind: 'idle' })
})

it('delivers and keeps what the downstream calls the message', async () => {
  await fixture.append(message('m', { headers: { a: 'b' } }))
  const seen: Message[] = []
  const target = functionTarget(each => (seen.push(each), 'evt_1'))
  const turn = await relay(takesAll, { targets: { orders: target } }).relayOnce()
  expect(turn).toMatchObject({ kind: 'worked', delivered: 1, failed: 0, parked: 0, held: 0 })
  expect(seen).toMatchObject([{ dedupId: 'm', topic: 'orders', headers: { a: 'b' }, attempts: 0 }])
  expect(await fixture.store.outbox.downstreamId(seen[0]?.position ?? '')).toBe('evt_1')
})

it('holds its lane in the name of its process, for people who look', async () => {
  await fixture.append(message('m'))
  let holder: string | undefined
  const deliver: Deliver = async () => {
    holder = (await fixture.store.admin.lanes()).lanes[0]?.lease?.by
    return { kind: 'delivered' }
  }
  await relay(deliver).relayOnce()
  expect(holder).toContain(`${hostname()}:${process.pid}:`)
  expect(await fixture.store.admin.lanes()).toEqual({ lanes: [], partial: false })
})

it('delivers several aggregates at once, within its bound, and each in order', async () => {
  const aggregates = Array.from({ length: 60 }, (_, index) => `g${index}`)
  for (const turn of [1, 2, 3]) {
    await fixture.append(...aggregates.map(aggregate => message(`${aggregate}-${turn}`, { aggregate })))
  }
  let running = 0
  let most = 0
  const seen: string[] = []
  const deliver: Deliver = async ({ dedupId }) => {
    running += 1
    most = Math.max(most, running)
    await delay(2)
    seen.push(dedupId)
    running -= 1
    return { kind: 'delivered' }
  }
  await drain(relay(deliver, { concurrency: 3 }))
  expect(most).toBe(3)
  expect(seen).toHaveLength(180)
  for (const aggregate of aggregates) {
    expect(seen.filter(text => text.startsWith(`${aggregate}-`))).toEqual([1, 2, 3].map(turn => `${aggregate}-${turn}`))
  }
})

it('gives a target as many deliveries at once as it takes, and the others as many as before', async () => {
  const aggregates = Array.from({ length: 200 }, (_, index) => `g${index}`)
  await fixture.append(...aggregates.map(aggregate => message(`wide-${aggregate}`, { aggregate })))
  await fixture.append(
    ...aggregates.map(aggregate => message(`narrow-${aggregate}`, { topic: 'mail', aggregate: `n${aggregate}` })),
  )
  // Their messages go to both.
  await fixture.append(
    ...['wide', 'narrow'].map(id => message(`${id}-x`, { topic: id === 'wide' ? 'orders' : 'mail', aggregate: 'x' })),
  )
  const counting = () => {
    const seen = { running: 0, most: 0 }
    const deliver: Deliver = async () => {
      seen.running += 1
      seen.most = Math.max(seen.most, seen.running)
      await delay(2)
      seen.running -= 1
      return { kind: 'delivered' }
    }
    return { seen, target: functionTarget(deliver) }
  }
  const [wide, narrow] = [counting(), counting()]
  const targets = { orders: { ...wide.target, concurrency: 20 }, mail: narrow.target }
  await drain(relay(takesAll, { targets, concurrency: 3 }))
  expect({ wide: wide.seen.most, narrow: narrow.seen.most }).toEqual({ wide: 20, narrow: 3 })
})

it('delivers to a target only after it was prepared, and tells it the longest gap between two attempts', async () => {
  await fixture.append(message('m'))
  const steps: unknown[] = []
  const prepare = async (timing: RelayTiming) => {
    await delay(20)
    steps.push(timing)
  }
  const deliver: Deliver = ({ dedupId }) => (steps.push(dedupId), { kind: 'delivered' })
  const targets = { orders: { ...functionTarget(deliver), prepare } }
  await drain(relay(takesAll, { targets, timeoutMs: 1_000, backoffMsMax: 20_000, leaseMs: 300_000 }))
  expect(steps).toEqual([{ retryGapMs: 321_000 }, 'm'])
})

it('prepares a target again after it failed, fails its messages until then, and tells why', async () => {
  await fixture.append(message('m'), message('other', { topic: 'mail' }))
  const seen: string[] = []
  const deliver: Deliver = ({ dedupId }) => (seen.push(dedupId), { kind: 'delivered' })
  let isWrong = true
  const prepare = async () => {
    if (isWrong) throw misconfigured('the stream forgets too soon')
  }
  const targets = { orders: { ...functionTarget(deliver), name: 'a stream', prepare }, mail: functionTarget(deliver) }
  const report = vi.fn()
  const turns = relay(takesAll, { targets, telemetry: { count() {}, observe() {}, report } })
  await drain(turns)
  expect(seen).toEqual(['other'])
  expect(report).toHaveBeenCalledWith('an outbox target is not ready', {
    detail: 'a stream: the stream forgets too soon',
  })
  isWrong = false
  fixture.makeDue()
  await drain(turns)
  expect(seen).toEqual(['other', 'm'])
})

it('gives up on a target that is never prepared', async () => {
  await fixture.append(message('m'))
  const targets = { orders: { ...functionTarget(takesAll), prepare: () => new Promise<void>(() => {}) } }
  expect(await drain(relay(takesAll, { targets, timeoutMs: 30 }))).toMatchObject([{ kind: 'worked', failed: 1 }])
})

it('tries again with growing waits, then parks with the history, and tells', async () => {
  await fixture.append(message('m'))
  const settle = vi.spyOn(fixture.store.outbox, 'settle')
  const report = vi.fn()
  const telemetry = { count() {}, observe() {}, report }
  const tried = relay(() => Promise.reject(Object.assign(new Error('secret'), { code: 'ECONNRESET' })), {
    ...{
      attemptsMax: 4,
      backoffMs: 1_000,
      backoffMsMax: 3_000,
      clock: { ...fixture.clock, random: () => 1 },
      telemetry,
    },
  })
  for (let turn = 0; turn < 6; turn += 1) {
    await drain(tried)
    fixture.makeDue()
  }
  const ends = settle.mock.calls.flatMap(([, { ends }]) => ends)
  expect(ends.map(end => end.kind === 'failed' && end.next)).toEqual([
    { kind: 'retry', dueInMs: 1_000 },
    { kind: 'retry', dueInMs: 2_000 },
    { kind: 'retry', dueInMs: 3_000 },
    { kind: 'park' },
  ])
  const [parked] = await fixture.store.outbox.parked({ limit: 10 })
  expect(parked).toMatchObject({ dedupId: 'm', attempts: 4, cause: 'ECONNRESET' })
  expect(parked?.history).toHaveLength(4)
  expect(report).toHaveBeenCalledTimes(1)
  expect(JSON.stringify(report.mock.calls)).not.toContain('secret')
})

it('waits at least as long as the target asks for', async () => {
  await fixture.append(message('m'))
  const settle = vi.spyOn(fixture.store.outbox, 'settle')
  await drain(relay(() => ({ kind: 'failed', error: 'HTTP 429', retryAfterMs: 120_000 })))
  expect(settle.mock.calls[0]?.[1].ends).toMatchObject([{ next: { kind: 'retry', dueInMs: 120_000 } }])
})

it('parks at once what the target refuses for good; its aggregate waits, the others go on', async () => {
  await fixture.append(
    ...['bad', 'after'].map(id => message(id, { aggregate: 'a' })),
    message('other', { aggregate: 'b' }),
  )
  const seen: string[] = []
  const deliver: Deliver = ({ dedupId }) => {
    seen.push(dedupId)
    return dedupId === 'bad' ? { kind: 'refused', error: 'HTTP 422' } : { kind: 'delivered' }
  }
  await drain(relay(deliver))
  expect([...seen].sort()).toEqual(['bad', 'other'])
  expect(await fixture.store.outbox.lag()).toMatchObject({ waiting: 1, parked: 1 })
})

it('goes on with the aggregate where it is told to skip', async () => {
  await fixture.append(...['bad', 'after'].map(id => message(id, { aggregate: 'a' })))
  const seen: string[] = []
  const deliver: Deliver = ({ dedupId }) => {
    seen.push(dedupId)
    return dedupId === 'bad' ? { kind: 'refused', error: 'HTTP 422' } : { kind: 'delivered' }
  }
  await drain(relay(deliver, { aggregate: 'skip' }))
  expect(seen).toEqual(['bad', 'after'])
})

it('gives up on a delivery that takes too long, also when the target heeds no signal', async () => {
  await fixture.append(message('m'))
  const turns = await drain(relay(() => new Promise(() => {}), { timeoutMs: 30 }))
  expect(turns).toMatchObject([{ kind: 'worked', failed: 1 }])
})

it('shows a target that looks late that its delivery was given up', async () => {
  await fixture.append(message('m'))
  const late = new Promise<unknown>(resolve => {
    const deliver: Deliver = async (_, options) => {
      await delay(300)
      const { signal } = { ...options }
      resolve([signal.aborted, signal.reason])
      return { kind: 'delivered' }
    }
    void drain(relay(deliver, { timeoutMs: 30 }))
  })
  expect(await late).toEqual([true, 'timeout'])
})

it('fails a message whose topic has no target, unless there is one for all others', async () => {
  await fixture.append(message('m', { topic: 'constructor' }))
  expect(await drain(relay(takesAll))).toMatchObject([{ failed: 1 }])
  fixture.makeDue()
  expect(await drain(relay(takesAll, { targets: { '*': functionTarget(() => undefined) } }))).toMatchObject([
    { delivered: 1 },
  ])
})

it('delivers again, with the same dedup id, what was delivered and not settled', async () => {
  await fixture.append(message('m'))
  const seen: string[] = []
  const deliver: Deliver = ({ dedupId }) => (seen.push(dedupId), { kind: 'delivered' })
  vi.spyOn(fixture.store.outbox, 'settle').mockRejectedValueOnce(new Error('the store is gone'))
  await expect(relay(deliver).relayOnce()).rejects.toThrow('the store is gone')
  await expect.poll(() => drain(relay(deliver))).toMatchObject([{ delivered: 1 }])
  expect(seen).toEqual(['m', 'm'])
})

it('stops delivering, and settles nothing, when another relay has taken its lane', async () => {
  await fixture.append(...[1, 2, 3].map(turn => message(`m${turn}`, { aggregate: 'a' })))
  const seen: string[] = []
  const slow: Deliver = async ({ dedupId }, { signal }) => {
    seen.push(dedupId)
    fixture.expireLeases()
    expect(await relay(takesAll).relayOnce()).toMatchObject({ kind: 'worked', delivered: 3 })
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    return { kind: 'failed', error: 'aborted' }
  }
  // The lease is renewed every second, which is when the relay learns that it is lost.
  expect(await relay(slow, { leaseMs: 3_000 }).relayOnce()).toMatchObject({ kind: 'lease-lost', delivered: 0 })
  expect(seen).toEqual(['m1'])
  expect(await fixture.store.outbox.lag()).toMatchObject({ waiting: 0, parked: 0 })
})

it('keeps its lane while a delivery takes several leases', async () => {
  await fixture.append(message('m'))
  const slow: Deliver = async () => (await delay(3_500), { kind: 'delivered' })
  expect(await relay(slow, { leaseMs: 2_000 }).relayOnce()).toMatchObject({ kind: 'worked', delivered: 1 })
})

it.each([
  ['slow', 200, [10, 10, 10]],
  ['quick', 0, [25, 5]],
])('gives the lane back after some %s batches, so that others get their turn', async (_, batchMs, delivered) => {
  await fixture.append(...Array.from({ length: 30 }, (_, index) => message(`m${index}`, { aggregate: 'a' })))
  let nowMs = 0
  const clock = { ...fixture.clock, monotonicMs: () => nowMs }
  const turns = relay(() => ((nowMs += batchMs), { kind: 'delivered' }), { batch: 1, clock })
  expect((await drain(turns)).map(turn => turn.kind === 'worked' && turn.delivered)).toEqual(delivered)
})

it('parks the message that kills its relays, and delivers the rest', async () => {
  await fixture.append(
    ...['poison', 'after'].map(id => message(id, { aggregate: 'a' })),
    message('other', { aggregate: 'b' }),
  )
  const seen: string[] = []
  // A process that dies here neither settles nor releases its lane.
  const outbox = { ...fixture.store.outbox, settle: () => new Promise<never>(() => {}) }
  for (let turn = 0; turn < 10; turn += 1) {
    let dead = false
    const deliver: Deliver = ({ dedupId }) => {
      dead ||= dedupId === 'poison'
      if (!dead) seen.push(dedupId)
      return { kind: 'delivered' }
    }
    const dying = createRelay({
      outbox: { ...outbox, settle: (...given) => (dead ? outbox.settle() : fixture.store.outbox.settle(...given)) },
      targets: { '*': functionTarget(deliver) },
    })
    for (let lanes = 0; lanes < 8 && !dead; lanes += 1) await Promise.race([dying.relayOnce(), delay(200)])
    fixture.expireLeases()
    fixture.makeDue()
  }
  expect(await fixture.store.outbox.parked({ limit: 10 })).toMatchObject([{ dedupId: 'poison', crashes: 4 }])
  expect(seen).toContain('other')
  expect(seen).not.toContain('after')
})

it('calls its fault points around every delivery', async () => {
  await fixture.append(message('m'))
  const steps: string[] = []
  const faultPoint = Symbol.for('latchkey.faultPoint')
  Reflect.set(globalThis, faultPoint, (name: string) => void steps.push(name))
  try {
    await drain(relay(() => (steps.push('deliver'), { kind: 'delivered' })))
  } finally {
    Reflect.deleteProperty(globalThis, faultPoint)
  }
  expect(steps).toEqual(['relay:before-deliver', 'deliver', 'relay:after-deliver'])
})

it('refuses a wrong policy at construction', () => {
  const wrong = [
    { batch: 0 },
    { batch: 1.5 },
    { batch: 5_000 },
    { leaseMs: -1 },
    { attemptsMax: Number.NaN },
    { timeoutMs: Infinity },
  ]
  for (const policy of wrong) {
    expect(() => relay(takesAll, policy)).toThrow(expect.objectContaining({ code: 'misconfigured' }))
  }
  const noTarget = { orders: {} as never }
  expect(() => relay(takesAll, { targets: noTarget })).toThrow(/orders/)
  const noDeliveries = { orders: { ...functionTarget(takesAll), concurrency: 0 } }
  expect(() => relay(takesAll, { targets: noDeliveries })).toThrow(
    /concurrency of the target for orders must be a whole number from 1 .*got 0/,
  )
})

/** Reads ahead, as stores do whose commits take a while. */
function readingAhead(seen: string[]): Outbox<unknown> {
  const { outbox } = fixture.store
  const ahead = async (
    lease: Parameters<Outbox<unknown>['next']>[0],
    { limit, after }: { limit: number; after: string },
  ) => {
    seen.push('ahead')
    const batch = await outbox.next(lease, { limit: limit * 2 })
    if (batch === 'lease-lost') return undefined
    const from = batch.messages.findIndex(each => each.position === after) + 1
    const messages = batch.messages.slice(from, from + limit)
    return { ...batch, messages, through: messages.at(-1)?.position } satisfies Batch
  }
  return { ...outbox, ahead }
}

it('reads ahead while a batch is settled, and delivers that only when it is', async () => {
  await fixture.append(...[1, 2, 3, 4, 5].map(turn => message(`m${turn}`, { aggregate: 'a' })))
  const seen: string[] = []
  const outbox = readingAhead(seen)
  const settle: typeof outbox.settle = async (...args) => {
    await delay(20)
    seen.push('settled')
    return outbox.settle(...args)
  }
  const deliver: Deliver = ({ dedupId }) => (seen.push(dedupId), { kind: 'delivered' })
  await drain(relay(deliver, { outbox: { ...outbox, settle }, batch: 2 }))
  const batches = [
    ['m1', 'm2', 'ahead', 'settled'],
    ['m3', 'm4', 'ahead', 'settled'],
    ['m5', 'settled'],
  ]
  expect(seen).toEqual(batches.flat())
})

it('delivers nothing of what it read ahead when the batch before could not be settled', async () => {
  await fixture.append(...[1, 2, 3, 4].map(turn => message(`m${turn}`, { aggregate: 'a' })))
  const seen: string[] = []
  const outbox = readingAhead(seen)
  const deliver: Deliver = ({ dedupId }) => (seen.push(dedupId), { kind: 'delivered' })
  const lost = relay(deliver, { outbox: { ...outbox, settle: async () => 'lease-lost' }, batch: 2 })
  expect(await lost.relayOnce()).toMatchObject({ kind: 'lease-lost', delivered: 0 })
  const gone = { ...outbox, settle: () => Promise.reject(new Error('the store is gone')) }
  fixture.expireLeases()
  await expect(relay(deliver, { outbox: gone, batch: 2 }).relayOnce()).rejects.toThrow('the store is gone')
  expect(seen).toEqual(['m1', 'm2', 'ahead', 'm1', 'm2', 'ahead'])
})

it('reads again, instead of ahead, behind a message that failed', async () => {
  await fixture.append(
    ...[1, 2, 3, 4].map(turn => message(`m${turn}`, { aggregate: turn % 2 === 0 ? 'a' : undefined })),
  )
  const seen: string[] = []
  const deliver: Deliver = ({ dedupId }) => {
    seen.push(dedupId)
    return dedupId === 'm2' ? { kind: 'refused', error: 'HTTP 422' } : { kind: 'delivered' }
  }
  await drain(relay(deliver, { outbox: readingAhead(seen), batch: 2 }))
  expect(seen.filter(text => text !== 'ahead').toSorted()).toEqual(['m1', 'm2', 'm3'])
  expect(await fixture.store.outbox.lag()).toMatchObject({ waiting: 1, parked: 1 })
})

import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeClock, fakeClock } from '../../../test/engine/fake-clock.ts'
import { recordingTelemetry } from '../../../test/engine/fixture.ts'
import type { Quotas, Tokens } from '../../ports/faculties/quotas.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { storeCalls } from '../store/call.ts'
import { SharedBuckets } from './shared-buckets.ts'

let clock: FakeClock
let real: Quotas
let telemetry: ReturnType<typeof recordingTelemetry>
/** What the store was asked for, and by which call. */
let asked: [string, number][]
let isDown: boolean

beforeEach(() => {
  clock = fakeClock()
  const { quotas } = memoryStore({ clock })
  if (quotas === undefined) throw new Error('the memory store has quotas')
  real = quotas
  telemetry = recordingTelemetry()
  asked = []
  isDown = false
})

const callsOf = () => storeCalls({ storeName: 'memory', timeoutMs: 2_000, clock, telemetry })

/** One process. */
function process(perMinute: number, calls = callsOf()): SharedBuckets {
  const call = async <T>(name: string, tokens: number, work: () => Promise<T>): Promise<T> => {
    asked.push([name, tokens])
    if (isDown) throw new Error('connection terminated')
    return work()
  }
  const quotas: Quotas = {
    ...real,
    lease: (given: Tokens) => call('lease', given.tokens, () => real.lease(given)),
    giveBack: (given: Tokens) => call('give back', given.tokens, () => real.giveBack(given)),
    prune: ({ limit }) => call('prune', limit, () => real.prune({ limit })),
  }
  return new SharedBuckets({ quotas, calls, clock, telemetry }, { limit: 'new-keys', perMinute, operation: undefined })
}

async function take(buckets: SharedBuckets, times: number, scope = 'acme'): Promise<number> {
  let taken = 0
  for (let n = 0; n < times; n++) if (await buckets.take(scope, true)) taken += 1
  return taken
}

async function atOnce(buckets: SharedBuckets, times: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, async () => buckets.take('acme', true)))
  return answers.filter(Boolean).length
}

describe('tokens of a bucket in the store', () => {
  it('are leased a tenth of the limit at a time, at most a hundred, and spent without a call', async () => {
    expect(await take(process(50), 5)).toBe(5)
    expect(asked).toEqual([['lease', 5]])
    expect(await take(process(1_000_000), 100, 'other')).toBe(100)
    expect(asked).toEqual([
      ['lease', 5],
      ['lease', 100],
    ])
    expect(await take(process(3), 1, 'third')).toBe(1)
    expect(asked.at(-1)).toEqual(['lease', 1])
  })

  it('are taken without a promise while some are left', async () => {
    const buckets = process(50)
    expect(buckets.take('acme', true)).toBeInstanceOf(Promise)
    await clockTurn()
    expect(buckets.take('acme', true)).toBe(true)
  })

  it('are shared by the processes, each of which holds at most one lease that others miss', async () => {
    const [one, two, three] = [process(100), process(100), process(100)]
    expect(await take(one, 1)).toBe(1)
    expect(await take(two, 1)).toBe(1)
    // What is left of a hundred, without what the others hold.
    expect(await take(three, 200)).toBe(80)
    expect([await take(one, 200), await take(two, 200)]).toEqual([9, 9])
  })

  it('cost no call while the bucket is known to be empty', async () => {
    const buckets = process(60)
    expect(await take(buckets, 100)).toBe(60)
    const before = asked.length
    expect(await take(buckets, 1_000)).toBe(0)
    expect(asked).toHaveLength(before)
    expect(buckets.nextInMs('acme')).toBe(1_000)
    clock.advance(1_000)
    expect(await take(buckets, 10)).toBe(1)
    expect(asked).toHaveLength(before + 1)
  })

  it('are leased once for all who ask at once, as many as they are', async () => {
    expect(await atOnce(process(100), 40)).toBe(40)
    expect(asked).toEqual([['lease', 40]])
  })

  it('never pass the limit, however many ask at once', async () => {
    const buckets = process(100)
    expect(await atOnce(buckets, 300)).toBe(100)
    expect(await atOnce(buckets, 300)).toBe(0)
  })

  it('lapse after a minute', async () => {
    const buckets = process(100)
    expect(await take(buckets, 1)).toBe(1)
    clock.advance(60_000)
    expect(await take(buckets, 200)).toBe(100)
  })

  it('are spent by another caller if they are given back, and by another process if they are many', async () => {
    const [one, two] = [process(100), process(100)]
    expect(await atOnce(one, 100)).toBe(100)
    expect(await take(two, 1)).toBe(0)
    for (let n = 0; n < 100; n++) one.giveBack('acme')
    await clockTurn()
    expect(asked.at(-1)).toEqual(['give back', 90])
    clock.advance(600)
    expect(await take(two, 200)).toBe(91)
    expect(await take(one, 200)).toBe(10)
  })

  it('come back to nobody after their lease has lapsed', async () => {
    const buckets = process(10)
    expect(await take(buckets, 10)).toBe(10)
    clock.advance(60_000)
    for (let n = 0; n < 10; n++) buckets.giveBack('acme')
    expect(await take(buckets, 100)).toBe(10)
  })

  it('are of buckets that are deleted again: two hundred at most for every hundred leases', async () => {
    const buckets = process(10)
    for (let n = 0; n < 250; n++) await take(buckets, 1, `scope ${n}`)
    expect(asked.filter(([name]) => name === 'prune')).toEqual([
      ['prune', 200],
      ['prune', 200],
    ])
  })
})

describe('a store that does not answer a lease', () => {
  it('leaves the limit to the process, which is counted and reported, and is asked again after a second', async () => {
    const buckets = process(5)
    isDown = true
    expect(await buckets.take('acme', true)).toBe(true)
    expect(await take(buckets, 100)).toBe(4)
    expect(asked).toHaveLength(1)
    expect(buckets.nextInMs('acme')).toBe(12_000)
    expect(telemetry.counted('limit.unshared')).toBe(1)
    expect(JSON.stringify(telemetry.told)).toContain('this process limits by itself')
    isDown = false
    clock.advance(1_000)
    expect(await take(buckets, 1)).toBe(1)
    expect(asked).toHaveLength(2)
  })

  it('is not asked while its circuit is open', async () => {
    const calls = callsOf()
    for (let n = 0; n < 5; n++) calls.circuit.failed(new Error(`connection ${n} terminated`))
    expect(await take(process(5, calls), 100)).toBe(5)
    expect(asked).toEqual([])
    expect(telemetry.counted('limit.unshared')).toBe(1)
  })
})

describe('who may not wait', () => {
  it('is answered by what the process knows, and leases for the next', async () => {
    const buckets = process(50)
    expect(buckets.take('acme', false)).toBe(true)
    await clockTurn()
    expect(asked).toEqual([['lease', 5]])
    expect(buckets.take('acme', false)).toBe(true)
    expect(asked).toHaveLength(1)
  })
})

/** Lets calls of the store end, which wait for no clock. */
function clockTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Latchkey } from '../../src/engine/latchkey.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { createWorkers } from '../../src/workers/workers.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'
import { executeRequest, latchkeyOn, recordingTelemetry, rowOf } from './fixture.ts'

let clock: FakeClock
let store: Store
let telemetry: ReturnType<typeof recordingTelemetry>
let open: Latchkey<unknown, unknown>[]
let passes: string[]

beforeEach(() => {
  clock = fakeClock()
  passes = []
  const inner = memoryStore({ clock })
  store = {
    ...inner,
    sweep: options => (passes.push(`sweep ${options.limit}`), inner.sweep(options)),
    reap: options => (passes.push(`reap ${options.limit}`), inner.reap(options)),
    resumable: options => (passes.push('resumable'), inner.resumable(options)),
  }
  telemetry = recordingTelemetry()
  open = []
})
afterEach(async () => {
  await Promise.all(open.map(latchkey => latchkey.close()))
  expect(clock.timers()).toBe(0)
})

function start(options: { maintenance?: boolean; store?: Store } = {}): Latchkey<unknown, unknown> {
  const latchkey = latchkeyOn(options.store ?? store, { maintenance: true, clock, telemetry, ...options })
  open.push(latchkey)
  return latchkey
}

async function pass(minutes: number): Promise<void> {
  for (let second = 0; second < 60 * minutes; second++) {
    clock.advance(1_000)
    await new Promise(setImmediate)
  }
}

async function claim(key: string, leaseMs: number, expiresInMs: number): Promise<void> {
  const { identity, fingerprint } = executeRequest(key)
  await store.claim({
    ...{ identity, fingerprint, claimId: clock.randomId(), recovery: 'hold', leaseMs, expiresInMs },
    description: undefined,
  })
}

describe('a Latchkey without workers', () => {
  it('sweeps and reaps once a minute, at most two hundred rows, and resumes nothing', async () => {
    start()
    await claim('dead', 1_000, 900_000)
    await pass(5)
    expect(passes).toEqual(Array.from({ length: 5 }, () => ['sweep 100', 'reap 100']).flat())
    expect(await rowOf(store, 'dead')).toMatchObject({ state: 'unknown' })
    expect(telemetry.counted('zombie_key')).toBe(1)
  })

  it('deletes what has expired, so that the table does not grow for ever', async () => {
    const latchkey = start()
    const operation = latchkey.guarded('brief', {
      ...{ onFailure: 'hold', leaseMs: 1_000, holdMsMax: 1_000, retentionMs: 10_000 },
      allowShortRetention: true,
    })
    for (let n = 0; n < 150; n++) await operation.run({ scope: 'acme', key: `k${n}`, input: n }, () => n)
    await pass(1)
    expect((await store.list({ limit: 1_000 })).records).toHaveLength(50)
    await pass(1)
    expect((await store.list({ limit: 1_000 })).records).toHaveLength(0)
    expect(telemetry.counted('ttl_pruned')).toBe(150)
  })

  it('prunes the rates of operations after a day, so that their table does not grow for ever', async () => {
    const rate = (operation: string) => ({ operation, metric: 'reserve.created', count: 1 })
    await store.admin?.addRates(Array.from({ length: 1_200 }, (_, n) => rate(`pay ${n}`)))
    clock.advance(23 * 3_600_000)
    await store.admin?.addRates([rate('young')])
    clock.advance(2 * 3_600_000)
    start()
    await pass(2)
    expect(telemetry.counted('ttl_pruned')).toBe(1_200)
    const left = await store.admin?.rates({ sinceMs: 24 * 3_600_000, metrics: ['reserve.created'] })
    expect(left).toMatchObject([{ operation: 'young' }])
  })

  it('says so once', async () => {
    start()
    await pass(3)
    expect(telemetry.told.filter(entry => String(entry).includes('no workers run'))).toHaveLength(1)
  })

  it('makes one pass a minute for one store, however many Latchkeys use it', async () => {
    start()
    start()
    start()
    await pass(3)
    expect(passes).toHaveLength(6)
  })

  it('does nothing any more once it is closed', async () => {
    await start().close()
    await pass(3)
    expect(passes).toEqual([])
  })

  it('tries again a minute after the store has failed', async () => {
    let failures = 0
    start({ store: { ...store, sweep: () => ((failures += 1), Promise.reject(new Error('connection terminated'))) } })
    await pass(3)
    expect(failures).toBe(3)
  })
})

describe('is left to others', () => {
  it('by option', async () => {
    start({ maintenance: false })
    await pass(3)
    expect(passes).toEqual([])
  })

  it('where workers do it, and taken back when they end', async () => {
    const latchkey = start()
    const workers = createWorkers(latchkey, { only: ['reaper'] })
    workers.start()
    await pass(2)
    // The reaper's own batches are of another size.
    expect(passes.filter(made => made === 'reap 100')).toEqual([])
    expect(passes.filter(made => made === 'sweep 100')).toHaveLength(2)
    await workers.stop()
    passes = []
    await pass(1)
    expect(passes).toEqual(['sweep 100', 'reap 100'])
  })
})

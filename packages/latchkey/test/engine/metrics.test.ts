/** The counters of the engine that no other test is about. Each counts events: one caller, one key, one execution. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { notExecuted } from '../../src/ports/errors.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { fakeClock, type FakeClock } from './fake-clock.ts'
import { idOf, latchkeyOn, operationName, recordingTelemetry, runRequest, type TestLatchkey } from './fixture.ts'

let clock: FakeClock
let store: Store
let telemetry: ReturnType<typeof recordingTelemetry>
let latchkey: TestLatchkey
beforeEach(() => {
  clock = fakeClock()
  store = memoryStore({ clock })
  telemetry = recordingTelemetry()
  latchkey = latchkeyOn(store, { telemetry, clock })
})
afterEach(() => latchkey.close())

const fails = () => Promise.reject(new Error('socket hang up'))
const ofMetric = (metric: string) => telemetry.told.filter(one => Array.isArray(one) && one[0] === metric)

describe('a key that is used again for another request', () => {
  it('is counted once for each such request, and reported with scope, row and parts, never with the key', async () => {
    const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
    await operation.run(runRequest('secret-key', { amount: 1 }), () => 1)
    const reused = operation.run(runRequest('secret-key', { amount: 2 }), () => 1)
    await expect(reused).rejects.toMatchObject({ code: 'key-reused' })
    const about = { operation: operationName, identity: idOf('secret-key'), scope: 'acme' }
    expect(ofMetric('reserve.key_misuse')).toEqual([['reserve.key_misuse', about]])
    expect(telemetry.told).toContainEqual([
      expect.stringMatching(/^a client used a key again for another request/),
      { ...about, detail: 'body' },
    ])
    expect(JSON.stringify(telemetry.told)).not.toContain('secret-key')
  })
})

describe('a duplicate', () => {
  it('is counted with its scope: a replay, and one that meets a running request', async () => {
    const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
    await operation.run(runRequest('k'), async () => {
      await expect(operation.run(runRequest('k'), () => 2)).rejects.toMatchObject({ code: 'in-progress' })
      return 1
    })
    await operation.run(runRequest('k'), () => 2)
    const about = { operation: operationName, scope: 'acme' }
    expect(ofMetric('reserve.in_progress')).toEqual([['reserve.in_progress', about]])
    expect(ofMetric('reserve.replay')).toEqual([['reserve.replay', about]])
  })
})

describe('a key that is tried again', () => {
  const about = { operation: operationName, identity: idOf('k') }

  it('is one created and one retried key, not two created ones', async () => {
    const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
    await expect(operation.run(runRequest('k'), () => Promise.reject(notExecuted()))).rejects.toThrow()
    expect(await operation.run(runRequest('k'), () => 1)).toBe(1)
    expect(ofMetric('reserve.created')).toEqual([['reserve.created', about]])
    expect(ofMetric('reserve.failed_retry')).toEqual([['reserve.failed_retry', about]])
  })

  it('is counted as retried also where an atomic operation takes the row over', async () => {
    const before = latchkeyOn(store, { clock })
    const guarded = before.guarded(operationName, { onFailure: 'hold' })
    await expect(guarded.run(runRequest('k'), () => Promise.reject(notExecuted()))).rejects.toThrow()
    expect(await latchkey.atomic(operationName).run(runRequest('k'), () => 1)).toBe(1)
    expect(ofMetric('reserve.failed_retry')).toEqual([['reserve.failed_retry', about]])
    expect(ofMetric('reserve.created')).toEqual([])
    await before.close()
  })
})

it('counts each request that finds its outcome unknown, and not the one that left it so', async () => {
  const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
  await expect(operation.run(runRequest('k'), fails)).rejects.toMatchObject({ code: 'outcome-unknown' })
  expect(telemetry.counted('reserve.unknown')).toBe(0)
  await expect(operation.run(runRequest('k'), fails)).rejects.toMatchObject({ code: 'outcome-unknown' })
  await expect(operation.run(runRequest('k'), fails)).rejects.toMatchObject({ code: 'outcome-unknown' })
  expect(telemetry.counted('reserve.unknown')).toBe(2)
})

describe('the duration of an execution', () => {
  const slow = async () => {
    clock.advance(120)
    return 1
  }

  it.each([
    ['guarded', () => latchkey.guarded(operationName, { onFailure: 'hold' }).run(runRequest('k'), slow)],
    ['atomic', () => latchkey.atomic(operationName).run(runRequest('k'), slow)],
    [
      'phased',
      () =>
        latchkey
          .phased(operationName, { version: 1 }, async x => {
            await x.phase('slow', slow)
            return { status: 200, headers: [], body: undefined, version: 0 }
          })
          .run(runRequest('k')),
    ],
  ])('is observed once for %s work, and not for its replay', async (_, run) => {
    await run()
    await run().catch(() => {})
    expect(ofMetric('execution.duration')).toEqual([['execution.duration', 120, { operation: operationName }]])
  })

  it('is reported once a minute where one in a hundred uses more than half of the lease, with the lease to set', async () => {
    const operation = latchkey.guarded(operationName, { onFailure: 'hold', leaseMs: 15_000 })
    let runs = 0
    const runFor = async (tookMs: number, times: number) => {
      for (let n = 0; n < times; n++) {
        await operation.run(runRequest(`k${(runs += 1)}`), async () => {
          clock.advance(tookMs)
          return 1
        })
      }
    }
    const warnings = () => telemetry.told.filter(one => String(one).includes('leaseMs'))
    await runFor(10, 126)
    await runFor(8_200, 1)
    expect(warnings()).toEqual([])
    await runFor(8_200, 2)
    const message =
      'one in a hundred executions takes 8200 ms or longer, more than half of the lease of 15000 ms: set leaseMs to 17000 or more, or make the handler shorter'
    expect(warnings()).toEqual([[message, { operation: operationName }]])
    await runFor(8_200, 6)
    expect(warnings()).toHaveLength(1)
    await runFor(8_200, 2)
    expect(warnings()).toHaveLength(2)
  })

  it('is observed as a share of the lease as well, where there is one', async () => {
    await latchkey.guarded(operationName, { onFailure: 'hold', leaseMs: 1_200 }).run(runRequest('k'), slow)
    expect(ofMetric('lease.used_ratio')).toEqual([['lease.used_ratio', 0.1, { operation: operationName }]])
  })
})

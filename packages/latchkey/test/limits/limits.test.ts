import { describe, expect, it } from 'vitest'
import { json } from 'latchkey'
import { engine } from '../../src/engine/internal.ts'
import { lateByMs, refusalsAtOncePerMinute } from '../../src/engine/limits/refusal-pace.ts'
import { asker, type Run, scene } from './scene.ts'

describe('new keys', () => {
  const limits = { newKeysPerMinute: 2 }

  it('are refused beyond the limit of their scope, and of no other, until there is room again', async () => {
    const { latchkey, clock, store, telemetry } = scene(limits)
    const ask = asker(latchkey.guarded('pay', { onFailure: 'hold' }).run)
    expect([await ask('a'), await ask('b'), await ask('c')]).toEqual(['ran', 'ran', 'limit-exceeded'])
    expect(await ask('c', { scope: 'other' })).toBe('ran')
    expect((await store.list({ scope: 'acme', limit: 10 })).records).toHaveLength(2)
    expect(telemetry.told).toContainEqual(['limit.refused', { operation: 'pay', scope: 'acme', detail: 'new-keys' }])
    clock.leap(30_000)
    expect([await ask('c'), await ask('d')]).toEqual(['ran', 'limit-exceeded'])
  })

  it('tell when there is room', async () => {
    const { latchkey } = scene({ newKeysPerMinute: 1 })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    await pay.run({ scope: 'acme', key: 'a', input: 1 }, () => 1)
    const error = await pay.run({ scope: 'acme', key: 'b', input: 1 }, () => 1).catch((thrown: unknown) => thrown)
    expect((error as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(50_000)
    expect((error as { retryAfterMs: number }).retryAfterMs).toBeLessThanOrEqual(60_000)
  })

  it('do not count what is answered from a row, nor what runs again', async () => {
    const { latchkey } = scene(limits)
    const pay = latchkey.guarded('pay', { onFailure: 'rerun' })
    const ask = asker(pay.run)
    const failing = pay.run({ scope: 'acme', key: 'a', input: 1 }, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
    expect([await ask('a'), await ask('a'), await ask('a'), await ask('b')]).toEqual([
      'ran',
      'replayed',
      'replayed',
      'ran',
    ])
    // None is left: rows are answered as always.
    expect([await ask('c'), await ask('a'), await ask('b', { input: 2 })]).toEqual([
      'limit-exceeded',
      'replayed',
      'key-reused',
    ])
  })

  it('count once however many ask at once', async () => {
    const { latchkey } = scene({ newKeysPerMinute: 5 })
    const ask = asker(latchkey.guarded('pay', { onFailure: 'hold' }).run)
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(`key ${n}`)))
    expect(answers.filter(answer => answer === 'ran')).toHaveLength(5)
    expect(answers.filter(answer => answer === 'limit-exceeded')).toHaveLength(15)
  })

  it('are refused late to a scope that goes on after many refusals, and to no other', async () => {
    const { latchkey } = scene({ newKeysPerMinute: 1 })
    const ask = asker(latchkey.guarded('pay', { onFailure: 'hold' }).run)
    const many = (scope: string, count: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => ask(`key ${n}`, { scope })))
    /** More than the scope has regained meanwhile. */
    const late = async (scope: string) => {
      const beganAt = performance.now()
      expect(new Set(await many(scope, 100))).toEqual(new Set(['limit-exceeded']))
      return performance.now() - beganAt >= lateByMs - 1
    }
    for (const scope of ['acme', 'other']) await ask('first', { scope })
    await many('acme', refusalsAtOncePerMinute)
    expect([await late('acme'), await late('other')]).toEqual([true, false])
  })

  it.each(['atomic', 'phased', 'deferred'] as const)('are limited in %s work', async kind => {
    const { latchkey, store } = scene(limits)
    const run: Run =
      kind === 'atomic'
        ? latchkey.atomic('op').run
        : kind === 'phased'
          ? latchkey.phased('op', { version: 1 }, async () => json(200, {})).run
          : latchkey.deferred('op', { deadlineMs: 60_000 }, async () => json(200, {})).run
    const ask = async (key: string) => (await asker(run)(key)) ?? 'no code'
    const answers = [await ask('a'), await ask('b'), await ask('c'), await ask('a')]
    expect(answers.map(answer => answer === 'limit-exceeded')).toEqual([false, false, true, false])
    expect((await store.list({ limit: 10 })).records).toHaveLength(2)
  })

  it('are limited in a transaction of the caller', async () => {
    const { latchkey, store } = scene({ newKeysPerMinute: 1 })
    const order = latchkey.atomic('op')
    const ask = (key: string) =>
      store
        .transaction(async tx => order.run({ scope: 'acme', key, input: 1, tx }, () => 1))
        .catch((error: unknown) => (error as { code: string }).code)
    expect([await ask('a'), await ask('b')]).toEqual([1, 'limit-exceeded'])
  })

  it('have a limit for one operation beside the one of the whole', async () => {
    const { latchkey } = scene({ newKeysPerMinute: 3 })
    const few = asker(latchkey.guarded('few', { onFailure: 'hold', limits: { newKeysPerMinute: 1 } }).run)
    const many = asker(latchkey.guarded('many', { onFailure: 'hold' }).run)
    expect([await few('a'), await few('b'), await many('a'), await many('b'), await many('c')]).toEqual([
      'ran',
      'limit-exceeded',
      'ran',
      'ran',
      'limit-exceeded',
    ])
  })

  it('are given back when the store did not take them', async () => {
    const { latchkey, store } = scene({ newKeysPerMinute: 1 })
    const { claim } = store
    const ask = asker(latchkey.guarded('pay', { onFailure: 'hold' }).run)
    Object.assign(store, { claim: () => Promise.reject(new Error('away')) })
    expect(await ask('a')).toBe('store-unavailable')
    Object.assign(store, { claim })
    expect(await ask('a')).toBe('ran')
  })
})

describe('look-ups', () => {
  it('are refused beyond their limit, whatever the row holds', async () => {
    const { latchkey } = scene({ lookupsPerMinute: 2 })
    const ask = asker(latchkey.guarded('pay', { onFailure: 'hold' }).run)
    expect([await ask('a'), await ask('a'), await ask('a'), await ask('a'), await ask('b')]).toEqual([
      'ran',
      'replayed',
      'replayed',
      'limit-exceeded',
      'ran',
    ])
  })

  it('count once for a caller that waits for a concurrent duplicate, with or without a new key left', async () => {
    const { latchkey } = scene({ newKeysPerMinute: 1, lookupsPerMinute: 1 })
    const pay = latchkey.guarded('pay', { onFailure: 'hold', onInProgress: 'wait', waitMs: 5_000 })
    const request = { scope: 'acme', key: 'a', input: 1 }
    let end = (_: number) => {}
    const first = pay.run(request, () => new Promise<number>(resolve => (end = resolve)))
    const second = pay.run(request, () => 2)
    await new Promise(resolve => setTimeout(resolve, 400))
    end(1)
    expect([await first, await second]).toEqual([1, 1])
  })

  it('include questions for a status', async () => {
    const { latchkey, telemetry } = scene({ lookupsPerMinute: 1 })
    const { statuses } = latchkey[engine]
    expect([await statuses.read('x', 'acme'), await statuses.read('x', 'acme')]).toMatchObject([
      { kind: 'absent' },
      { kind: 'limited' },
    ])
    expect(telemetry.told).toContainEqual(['limit.refused', { scope: 'acme', detail: 'lookups' }])
  })
})

describe('mismatches', () => {
  it('are refused beyond their limit, without a word about what differs', async () => {
    const { latchkey } = scene({ mismatchesPerMinute: 1 })
    const ask = asker(latchkey.guarded('pay', { onFailure: 'hold' }).run)
    expect([await ask('a'), await ask('a', { input: 2 }), await ask('a', { input: 3 }), await ask('a')]).toEqual([
      'ran',
      'key-reused',
      'limit-exceeded',
      'replayed',
    ])
  })
})

import { describe, expect, it } from 'vitest'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import { engine } from '../../src/engine/internal.ts'
import type { LimitOptions } from '../../src/engine/limits/limits.ts'
import type { Quotas } from '../../src/ports/faculties/quotas.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { asker, keysOf, ranOf, scene } from './scene.ts'

const hold = { onFailure: 'hold' } as const

describe('limits that processes share', () => {
  it('hold for all of them together, up to one lease of each', async () => {
    const { latchkey, another, store } = scene({ newKeysPerMinute: 20, shared: true })
    const asks = [latchkey, another(), another()].map(each => asker(each.guarded('pay', hold).run))
    const beganAt = performance.now()
    const all = await Promise.all(asks.map((ask, n) => ranOf(ask, keysOf(`process ${n}`, 20))))
    const refilled = Math.ceil((performance.now() - beganAt) / 3_000)
    const ran = all.reduce((sum, each) => sum + each, 0)
    expect(ran).toBeGreaterThanOrEqual(20)
    expect(ran).toBeLessThanOrEqual(20 + refilled)
    expect((await store.list({ scope: 'acme', limit: 100 })).records).toHaveLength(ran)
  })

  it('answer whoever has a row, also when the bucket is empty in every process', async () => {
    const { latchkey, another } = scene({ newKeysPerMinute: 2, shared: true })
    const [one, two] = [latchkey, another()].map(each => asker(each.guarded('pay', { onFailure: 'rerun' }).run))
    expect([await one?.('a'), await two?.('b'), await one?.('c'), await two?.('c')]).toEqual([
      ...['ran', 'ran', 'limit-exceeded', 'limit-exceeded'],
    ])
    expect([await one?.('b'), await two?.('a'), await two?.('a', { input: 2 })]).toEqual([
      ...['replayed', 'replayed', 'key-reused'],
    ])
  })

  it('let a retry run again at an empty bucket', async () => {
    const { latchkey } = scene({ newKeysPerMinute: 1, shared: true })
    const pay = latchkey.guarded('pay', { onFailure: 'rerun' })
    const failing = pay.run({ scope: 'acme', key: 'a', input: 1 }, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
    const ask = asker(pay.run)
    expect([await ask('b'), await ask('a')]).toEqual(['limit-exceeded', 'ran'])
  })

  it('do not spend the tokens of others on a crowd of retries', async () => {
    const { latchkey, another } = scene({ newKeysPerMinute: 100, shared: true })
    const [one, two] = [latchkey, another()].map(each => asker(each.guarded('pay', hold).run))
    expect(await one?.('a')).toBe('ran')
    const answers = await Promise.all(Array.from({ length: 99 }, async () => one?.('a')))
    expect(new Set(answers)).toEqual(new Set(['replayed']))
    await new Promise(resolve => setImmediate(resolve))
    const ran = two && (await ranOf(two, keysOf('new', 120)))
    expect(ran).toBeGreaterThan(80)
  })

  it('count look-ups and mismatches, too', async () => {
    const { latchkey, another } = scene({ lookupsPerMinute: 3, mismatchesPerMinute: 1, shared: true })
    const [one, two] = [latchkey, another()].map(each => asker(each.guarded('pay', hold).run))
    expect(await one?.('a')).toBe('ran')
    expect([await two?.('a', { input: 2 }), await one?.('a', { input: 3 }), await two?.('a')]).toEqual([
      ...['key-reused', 'limit-exceeded', 'replayed'],
    ])
    const { statuses } = latchkey[engine]
    expect([(await statuses.read('x', 'acme')).kind, await one?.('a')]).toEqual(['limited', 'limit-exceeded'])
  })

  it('are inherited by operations, which may count for themselves', async () => {
    const { latchkey, another } = scene({ shared: true })
    const asks = (name: string, shared?: boolean) =>
      [latchkey, another()].map(each => {
        const limits = { newKeysPerMinute: 1, ...(shared === undefined ? {} : { shared }) }
        return asker(each.guarded(name, { ...hold, limits }).run)
      })
    const answers = async (name: string, shared?: boolean) => {
      const [one, two] = asks(name, shared)
      return [await one?.('a'), await two?.('b')]
    }
    expect(await answers('inherits')).toEqual(['ran', 'limit-exceeded'])
    expect(await answers('alone', false)).toEqual(['ran', 'ran'])
    // A bucket of its own for each operation.
    expect(await answers('other')).toEqual(['ran', 'limit-exceeded'])
  })

  it('are those of the process while the store does not answer, and no request is refused for it', async () => {
    const { latchkey, store, telemetry } = scene({ newKeysPerMinute: 3, shared: true })
    const quotas = store.quotas as Quotas
    const { lease } = quotas
    Object.assign(quotas, { lease: () => Promise.reject(new Error('connection terminated')) })
    const ask = asker(latchkey.guarded('pay', hold).run)
    expect(await ask('first')).toBe('ran')
    expect(await ranOf(ask, keysOf('away', 5))).toBe(2)
    expect(telemetry.counted('limit.unshared')).toBeGreaterThanOrEqual(1)
    expect(telemetry.told).toContainEqual(['store.error', { detail: 'lease' }])
    Object.assign(quotas, { lease })
  })

  it('never keep a transaction of the caller waiting for the store', async () => {
    const { latchkey, store } = scene({ newKeysPerMinute: 1, shared: true })
    Object.assign(store.quotas as Quotas, { lease: () => new Promise(() => {}) })
    const order = latchkey.atomic('op')
    const ask = (key: string) =>
      store
        .transaction(async tx => order.run({ scope: 'acme', key, input: 1, tx }, () => 1))
        .catch((error: unknown) => (error as { code: string }).code)
    expect([await ask('a'), await ask('b')]).toEqual([1, 'limit-exceeded'])
  })

  it.each([
    [{ openKeys: 0 }, /limits\.openKeys must be a whole number from 1 to 1000000 \(got 0\)/],
    [{ storedBytes: 1.5 }, /limits\.storedBytes must be a whole number from 1 to \d+ \(got 1\.5\)/],
    [{ shared: 'yes' }, /limits\.shared must be true or false \(got 'yes'\)/],
    [{ openKey: 5 }, /unknown option limits\.openKey: did you mean limits\.openKeys\?/],
  ])('are checked when they are given: %o', (limits, message) => {
    const given = { store: memoryStore(), scope: () => 'acme', limits: limits as LimitOptions }
    expect(() => createLatchkey(given)).toThrow(message)
  })

  it.each([
    ['shared', { shared: true, newKeysPerMinute: 1 }],
    ['openKeys', { openKeys: 1 }],
    ['storedBytes', { storedBytes: 1 }],
  ])('name the way out where the store cannot do %s', (option, limits) => {
    const { quotas: _quotas, ...store } = memoryStore()
    const message = new RegExp(`limits\\.${option} needs a store .*the memory store does not: leave it out, or use`)
    const misconfigured = { code: 'misconfigured', message: expect.stringMatching(message) }
    expect(() => createLatchkey({ store, scope: () => 'acme', limits })).toThrow(expect.objectContaining(misconfigured))
    const latchkey = createLatchkey({ store, scope: () => 'acme', maintenance: false })
    expect(() => latchkey.guarded('pay', { ...hold, limits })).toThrow(/^pay: limits/)
  })
})

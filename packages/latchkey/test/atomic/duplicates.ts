/** Many callers with one key. Run by a test file per store. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import type { OperationOptions } from '../../src/engine/settings.ts'
import { fingerprintInput } from '../../src/engine/fingerprint/fingerprint.ts'
import type { Store } from '../../src/ports/store.ts'
import { answered, executeRequest, gate, latchkeyOn, operationName, told } from '../engine/setup.ts'
import { everything, nothing, ordering, type Shop } from './shop.ts'

export function itRunsOneOfMany(open: () => Promise<Shop>): void {
  let shop: Shop
  let stores: readonly Store[]
  beforeAll(async () => {
    shop = await open()
    stores = [shop.store, await shop.another(), await shop.another(), await shop.another()]
  })
  afterAll(() => shop.close())

  const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
  const on = (store: Store, options: OperationOptions = {}) => latchkeyOn(store).atomic(operationName, options)
  const everywhere = (options: OperationOptions = {}) => stores.map(store => on(store, options))
  const fifty = <T>(operations: AtomicOperation<unknown>[], ask: (operation: AtomicOperation<unknown>) => Promise<T>) =>
    Promise.all(
      Array.from({ length: 50 }, (_, at) => ask(operations[at % operations.length] as AtomicOperation<unknown>)),
    )

  it('runs one of fifty at once over four pools', async () => {
    const handler = ordering(shop, 'fifty', async () => {
      await pause(50)
      return answered(201)
    })
    const answers = (await fifty(everywhere(), each => each.execute(executeRequest('fifty'), handler.work))).map(told)
    expect(answers.filter(answer => answer === 'executed 201 yes')).toHaveLength(1)
    expect(new Set(answers)).toEqual(
      new Set(answers.filter(a => ['executed 201 yes', 'replayed 201', 'refused in-progress'].includes(a))),
    )
    expect(handler.calls).toBe(1)
    expect(await shop.committed('fifty')).toEqual(everything)
    const retries = await Promise.all(everywhere().map(each => each.execute(executeRequest('fifty'), handler.work)))
    expect(retries.map(told)).toEqual(Array(4).fill('replayed 201'))
    expect(handler.calls).toBe(1)
  })

  it('runs one of fifty at once again when the row has expired', async () => {
    const handler = ordering(shop, 'fifty-expired', async () => {
      await pause(20)
      return answered(201)
    })
    await on(shop.store).execute(executeRequest('fifty-expired'), handler.work)
    await shop.advance(25 * 3_600_000)
    await fifty(everywhere(), each => each.execute(executeRequest('fifty-expired'), handler.work))
    expect(handler.calls).toBe(2)
    expect(await shop.committed('fifty-expired')).toMatchObject({ orders: 2, keys: 1 })
  })

  it('gives all fifty the same value when they wait', async () => {
    let calls = 0
    const values = await fifty(everywhere({ whenInProgress: 'wait', waitMs: 30_000 }), each =>
      each.run({ scope: 'acme', key: 'waiting', input: {} }, async ({ tx }) => {
        calls += 1
        await shop.order(tx, 'waiting')
        await pause(100)
        return { order: Math.random() }
      }),
    )
    expect(new Set(values.map(value => value.order)).size).toBe(1)
    expect(calls).toBe(1)
    expect(await shop.committed('waiting')).toEqual(everything)
  })

  it('lets one of the waiting run when the first rolls back', async () => {
    const waiting = on(shop.store, { whenInProgress: 'wait', waitMs: 30_000 })
    const door = gate()
    const first = ordering(shop, 'second-chance', async () => {
      await door.opened
      return answered(500)
    })
    const others = ordering(shop, 'second-chance', () => answered(201))
    const failing = waiting.execute(executeRequest('second-chance'), first.work)
    while (first.calls === 0) await pause(5)
    const answers = Array.from({ length: 10 }, () => waiting.execute(executeRequest('second-chance'), others.work))
    await pause(50)
    door.open()
    expect(told(await failing)).toBe('executed 500 declined')
    const ends = (await Promise.all(answers)).map(told).sort()
    expect(ends).toEqual(['executed 201 yes', ...Array(9).fill('replayed 201')])
    expect(others.calls).toBe(1)
    expect(await shop.committed('second-chance')).toEqual(everything)
  })

  it('answers in-progress while the first runs, also to another input, and key-reused once it has committed', async () => {
    const operation = on(shop.store)
    const reused = executeRequest('reused', { fingerprint: fingerprintInput({ amount: 2 }) })
    const door = gate()
    const handler = ordering(shop, 'reused', async () => {
      await door.opened
      return answered(201)
    })
    const intruder = ordering(shop, 'reused', () => answered(201))
    const first = operation.execute(executeRequest('reused'), handler.work)
    while (handler.calls === 0) await pause(5)
    // Answered although the first cannot go on before these have ended.
    for (const request of [executeRequest('reused'), reused]) {
      const answer = await operation.execute(request, intruder.work)
      expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'in-progress', retryAfterMs: 1_000 } })
    }
    expect(await shop.committed('reused')).toEqual(nothing)
    door.open()
    expect(told(await first)).toBe('executed 201 yes')
    const answer = await operation.execute(reused, intruder.work)
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'key-reused', differs: ['body'] } })
    expect(told(await operation.execute(executeRequest('reused'), intruder.work))).toBe('replayed 201')
    expect(intruder.calls).toBe(0)
    expect(await shop.committed('reused')).toEqual(everything)
  })
}

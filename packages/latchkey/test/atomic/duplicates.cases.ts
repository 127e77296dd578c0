/** Many callers with one key. Run by a test file per store. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import type { OperationOptions } from '../../src/engine/options.ts'
import { fingerprintInput } from '../../src/engine/fingerprint/fingerprint.ts'
import { isLatchkeyError } from '../../src/ports/errors.ts'
import type { Store } from '../../src/ports/store.ts'
import { answered, executeRequest, gate, latchkeyOn, operationName, told } from '../engine/fixture.ts'
import { everything, nothing, ordering, type Shop } from './fixture.ts'

/** `snapshots`: each transaction looks at the database as it was when it began (REPEATABLE READ and above). */
export function itRunsOneOfMany(open: () => Promise<Shop>, { snapshots = false } = {}): void {
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

  /** At the strict levels of isolation a caller may start on an old snapshot and be rolled back; never twice, and never kept. */
  const expectStarts = (starts: number, expected: number) => {
    if (snapshots) expect(starts).toBeGreaterThanOrEqual(expected)
    else expect(starts).toBe(expected)
  }
  const mayBeTold = ['replayed 201', 'refused in-progress', ...(snapshots ? ['refused store-unavailable'] : [])]

  it('runs one of fifty at once over four pools', async () => {
    const starts: number[] = []
    const answers = await fifty(everywhere(), async each => {
      const handler = ordering(shop, 'fifty', async () => {
        await pause(50)
        return answered(201)
      })
      const answer = await each[engine].execute(executeRequest('fifty'), handler.work)
      starts.push(handler.calls)
      return told(answer)
    })
    expect(answers.filter(answer => answer === 'executed 201 yes')).toHaveLength(1)
    expect(answers.filter(answer => answer !== 'executed 201 yes' && !mayBeTold.includes(answer))).toEqual([])
    expect(Math.max(...starts)).toBe(1)
    expectStarts(
      starts.reduce((sum, each) => sum + each),
      1,
    )
    expect(await shop.committed('fifty')).toEqual(everything)
  })

  it('replays to all fifty at once what is finished: nobody is in another’s way', async () => {
    const handler = ordering(shop, 'finished', () => answered(201))
    await on(shop.store)[engine].execute(executeRequest('finished'), handler.work)
    const answers = await fifty(everywhere(), each => each[engine].execute(executeRequest('finished'), handler.work))
    expect(answers.map(told)).toEqual(answers.map(() => 'replayed 201'))
    expect(handler.calls).toBe(1)
  })

  it('runs one of fifty at once again when the row has expired', async () => {
    const handler = ordering(shop, 'fifty-expired', async () => {
      await pause(20)
      return answered(201)
    })
    await on(shop.store)[engine].execute(executeRequest('fifty-expired'), handler.work)
    await shop.advance(25 * 3_600_000)
    await fifty(everywhere(), each => each[engine].execute(executeRequest('fifty-expired'), handler.work))
    expectStarts(handler.calls, 2)
    expect(await shop.committed('fifty-expired')).toMatchObject({ orders: 2, keys: 1 })
  })

  it('gives all fifty the same value when they wait', async () => {
    let calls = 0
    const values = await fifty(everywhere({ onInProgress: 'wait', waitMs: 30_000 }), each =>
      each
        .run({ scope: 'acme', key: 'waiting', input: {} }, async ({ tx }) => {
          calls += 1
          await shop.order(tx, 'waiting')
          await pause(100)
          return Math.random()
        })
        .catch((error: unknown) => {
          if (snapshots && isLatchkeyError(error, 'store-unavailable')) return undefined
          throw error
        }),
    )
    expect(new Set(values.filter(value => value !== undefined)).size).toBe(1)
    expectStarts(calls, 1)
    expect(await shop.committed('waiting')).toEqual(everything)
  })

  it('asks the store at intervals while it waits, also when other waiting callers are refused', async () => {
    const door = gate()
    const first = ordering(shop, 'patient', async () => {
      await door.opened
      return answered(201)
    })
    const running = on(shop.store)[engine].execute(executeRequest('patient'), first.work)
    while (first.calls === 0) await pause(5)
    const other = stores[1] as Store
    let transactions = 0
    const transactor: Store['transactor'] = other.transactor && {
      ...other.transactor,
      transaction(...args) {
        transactions += 1
        // A loop that never leaves this turn of the event loop would keep the first handler from ending.
        if (transactions > 1_000) door.open()
        return other.transactor?.transaction(...args) ?? Promise.reject(new Error('unreachable'))
      },
    }
    const waiting = on({ ...other, transactor }, { onInProgress: 'wait', waitMs: 30_000 })
    const answers = Promise.all(
      Array.from({ length: 10 }, () => waiting[engine].execute(executeRequest('patient'), first.work)),
    )
    await pause(200)
    door.open()
    expect((await answers).map(told)).toEqual(Array.from({ length: 10 }, () => 'replayed 201'))
    expect(told(await running)).toBe('executed 201 yes')
    // Ten callers look after about 50 and 150 ms, and once more at the end.
    expect(transactions).toBeLessThan(50)
  })

  it('lets one of the waiting run when the first rolls back', async () => {
    const waiting = on(shop.store, { onInProgress: 'wait', waitMs: 30_000 })
    const door = gate()
    const first = ordering(shop, 'second-chance', async () => {
      await door.opened
      return answered(500)
    })
    const others = ordering(shop, 'second-chance', () => answered(201))
    const failing = waiting[engine].execute(executeRequest('second-chance'), first.work)
    while (first.calls === 0) await pause(5)
    const answers = Array.from({ length: 10 }, () =>
      waiting[engine].execute(executeRequest('second-chance'), others.work),
    )
    await pause(50)
    door.open()
    expect(told(await failing)).toBe('executed 500 not-stored')
    const ends = (await Promise.all(answers)).map(told)
    expect(ends.filter(end => end === 'executed 201 yes')).toHaveLength(1)
    const fine = snapshots ? ['executed 201 yes', ...mayBeTold] : ['executed 201 yes', 'replayed 201']
    expect(ends.filter(end => !fine.includes(end))).toEqual([])
    expectStarts(others.calls, 1)
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
    const first = operation[engine].execute(executeRequest('reused'), handler.work)
    while (handler.calls === 0) await pause(5)
    // Answered although the first cannot go on before these have ended.
    for (const request of [executeRequest('reused'), reused]) {
      const answer = await operation[engine].execute(request, intruder.work)
      expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'in-progress', retryAfterMs: 1_000 } })
    }
    expect(await shop.committed('reused')).toEqual(nothing)
    door.open()
    expect(told(await first)).toBe('executed 201 yes')
    const answer = await operation[engine].execute(reused, intruder.work)
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'key-reused', differs: ['body'] } })
    expect(told(await operation[engine].execute(executeRequest('reused'), intruder.work))).toBe('replayed 201')
    expect(intruder.calls).toBe(0)
    expect(await shop.committed('reused')).toEqual(everything)
  })
}

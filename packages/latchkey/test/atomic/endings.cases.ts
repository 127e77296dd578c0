/** How an atomic handler may end, and what is left in the database then. Run by a test file per store. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Attempt } from '../../src/engine/answer.ts'
import { engine } from '../../src/engine/internal.ts'
import type { Storable } from '../../src/engine/json-of.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import type { OperationOptions } from '../../src/engine/options.ts'
import { notExecuted, outcomeUnknown } from '../../src/ports/errors.ts'
import {
  act,
  answered,
  executeRequest,
  idOf,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  rowOf,
  told,
  type TestLatchkey,
} from '../engine/fixture.ts'
import { type Committed, everything, nothing, ordering, type Shop } from './fixture.ts'

export function itEndsAtomically(open: () => Promise<Shop>): void {
  let shop: Shop
  let latchkey: TestLatchkey
  let operation: AtomicOperation<unknown>
  beforeAll(async () => {
    shop = await open()
    latchkey = latchkeyOn(shop.store)
    operation = latchkey.atomic(operationName)
  })
  afterAll(() => shop.close())

  const declared = (options: OperationOptions) => latchkeyOn(shop.store).atomic(operationName, options)
  const threw = (error: unknown) => (): Attempt => ({ kind: 'threw', error })
  const refusalOnly: Committed = { orders: 0, keys: 1, outcomes: 1 }

  it('commits key, business rows and outcome together, and replays the answer', async () => {
    const handler = ordering(shop, 'together', async () => {
      expect(await shop.committed('together')).toEqual(nothing)
      return answered(201, 'order 1')
    })
    expect(told(await operation[engine].execute(executeRequest('together'), handler.work))).toBe('executed 201 yes')
    expect(await shop.committed('together')).toEqual(everything)
    const retry = await operation[engine].execute(executeRequest('together'), handler.work)
    expect(retry).toMatchObject({
      kind: 'replayed',
      outcome: { status: 201, headers: [['content-type', 'text/plain']] },
    })
    expect(retry.kind === 'replayed' && Buffer.from(retry.outcome.body ?? []).toString()).toBe('order 1')
    expect(handler.calls).toBe(1)
    expect(await rowOf(shop.store, 'together')).toMatchObject({ state: 'completed', fence: 1, attempts: 1 })
  })

  it('never shows one of the three without the others to a second connection', async () => {
    const seen = new Set<string>()
    for (let round = 0; round < 20; round += 1) {
      const key = `glimpse-${round}`
      let over = false
      const watching = (async () => {
        while (!over) {
          seen.add(JSON.stringify(await shop.committed(key)))
          await new Promise(resolve => setImmediate(resolve))
        }
      })()
      await operation[engine].execute(executeRequest(key), ordering(shop, key, () => answered(200)).work)
      over = true
      await watching
      seen.add(JSON.stringify(await shop.committed(key)))
    }
    expect([...seen].sort()).toEqual([JSON.stringify(nothing), JSON.stringify(everything)])
  })

  it('counts a key as created once, when its row is stored, however often it was rolled back before', async () => {
    const telemetry = recordingTelemetry()
    const counting = latchkeyOn(shop.store, { telemetry }).atomic(operationName)
    for (const status of [503, 429, 503, 201]) {
      await counting[engine].execute(
        executeRequest('created-once'),
        ordering(shop, 'created-once', () => answered(status)).work,
      )
      expect(telemetry.counted('reserve.created')).toBe(status === 201 ? 1 : 0)
    }
    const thrown = ordering(shop, 'created-alone', () => answered(402, 'no funds', new Error('card declined')))
    await counting[engine].execute(executeRequest('created-alone'), thrown.work)
    expect(telemetry.counted('reserve.created')).toBe(2)
  })

  it('keeps a 4xx that was thrown, by an insert of its own, without the business rows', async () => {
    const handler = ordering(shop, 'declined', () => answered(402, 'no funds', new Error('card declined')))
    expect(told(await operation[engine].execute(executeRequest('declined'), handler.work))).toBe('executed 402 yes')
    expect(await shop.committed('declined')).toEqual(refusalOnly)
    expect(told(await operation[engine].execute(executeRequest('declined'), handler.work))).toBe('replayed 402')
    expect(handler.calls).toBe(1)
  })

  it('commits the business rows of a 4xx that was returned', async () => {
    const handler = ordering(shop, 'returned', () => answered(409))
    expect(told(await operation[engine].execute(executeRequest('returned'), handler.work))).toBe('executed 409 yes')
    expect(await shop.committed('returned')).toEqual(everything)
  })

  const notKept: [string, string, () => Attempt][] = [
    ['a 500', 'executed 500 not-stored', () => answered(500)],
    ['a 503 rendered from a throw', 'executed 503 not-stored', () => answered(503, 'busy', new Error('busy'))],
    ['a throw', 'threw not-stored', threw(new Error('bug'))],
    ['a 429', 'executed 429 not-stored', () => answered(429)],
    ['a 429 rendered from a throw', 'executed 429 not-stored', () => answered(429, 'slow down', new Error('quota'))],
    ['notExecuted', 'threw not-stored', threw(notExecuted('the warehouse is closed'))],
    ['an unreplayable 500', 'unreplayable not-stored', () => ({ kind: 'unreplayable', status: 500, why: 'hijacked' })],
  ]
  it.each(notKept)('rolls back %s and stores nothing, so that the retry runs', async (name, expected, end) => {
    const first = ordering(shop, name, end)
    expect(told(await operation[engine].execute(executeRequest(name), first.work))).toBe(expected)
    expect(await shop.committed(name)).toEqual(nothing)
    const retry = ordering(shop, name, () => answered(201))
    expect(told(await operation[engine].execute(executeRequest(name), retry.work))).toBe('executed 201 yes')
    expect([first.calls, retry.calls]).toEqual([1, 1])
    expect(await shop.committed(name)).toEqual(everything)
  })

  it('rolls back what says notExecuted(), whatever it answers, so that the retry runs', async () => {
    const key = 'said-so'
    const first = await operation[engine].execute(executeRequest(key), async ({ tx, notExecuted: nothingDone }) => {
      await shop.order(tx, key)
      nothingDone()
      return answered(409)
    })
    expect(told(first)).toBe('executed 409 not-stored')
    expect(await shop.committed(key)).toEqual(nothing)
    const retry = ordering(shop, key, () => answered(201))
    expect(told(await operation[engine].execute(executeRequest(key), retry.work))).toBe('executed 201 yes')
    expect(await shop.committed(key)).toEqual(everything)
  })

  it('rejects with the very error that was thrown', async () => {
    const bug = new TypeError('x is not a function')
    const run = operation.run({ scope: 'acme', key: 'bug', input: {} }, () => Promise.reject(bug))
    await expect(run).rejects.toBe(bug)
  })

  it('holds a key whose handler does not know what it did outside, until somebody settles it', async () => {
    const key = 'nobody-knows'
    const handler = ordering(shop, key, threw(new Error('charge failed', { cause: outcomeUnknown('socket hang up') })))
    const first = await operation[engine].execute(executeRequest(key), handler.work)
    expect(first).toMatchObject({ kind: 'refused', refusal: { code: 'outcome-unknown', ownAttempt: true } })
    expect(await shop.committed(key)).toEqual({ orders: 0, keys: 1, outcomes: 0 })
    expect(await rowOf(shop.store, key)).toMatchObject({ state: 'unknown', fence: 1 })

    const retry = await operation[engine].execute(executeRequest(key), handler.work)
    expect(retry).toMatchObject({ kind: 'refused', refusal: { code: 'outcome-unknown', ownAttempt: false } })
    expect(handler.calls).toBe(1)

    const verdict = { kind: 'happened', status: 201, json: { found: true } } as const
    expect(await latchkey.settle({ id: idOf(key) }, verdict, act)).toEqual({ kind: 'settled' })
    expect(told(await operation[engine].execute(executeRequest(key), handler.work))).toBe('replayed 201')
    expect(handler.calls).toBe(1)
  })

  it('runs again, with the next fence, what was settled as never happened', async () => {
    const key = 'it-never-was'
    const first = ordering(shop, key, threw(outcomeUnknown('socket hang up')))
    await operation[engine].execute(executeRequest(key), first.work)
    await latchkey.settle({ id: idOf(key) }, { kind: 'never-happened' }, act)
    const retry = ordering(shop, key, () => answered(201))
    expect(told(await operation[engine].execute(executeRequest(key), retry.work))).toBe('executed 201 yes')
    expect(await shop.committed(key)).toEqual(everything)
    expect(await rowOf(shop.store, key)).toMatchObject({ state: 'completed', fence: 2, attempts: 2 })
  })

  it('commits what cannot be replayed, without a body, and tells the retry', async () => {
    const handler = ordering(shop, 'stream', () => ({ kind: 'unreplayable', status: 200, why: 'hijacked' }))
    expect(told(await operation[engine].execute(executeRequest('stream'), handler.work))).toBe('unreplayable yes')
    expect(await shop.committed('stream')).toEqual(everything)
    expect((await rowOf(shop.store, 'stream')).outcome).toMatchObject({ status: 200, body: undefined })
    expect(told(await operation[engine].execute(executeRequest('stream'), handler.work))).toBe(
      'refused response-not-stored',
    )
    expect(handler.calls).toBe(1)
  })

  it('stores a status that the operation wants kept, and leaves out one that it does not', async () => {
    const picky = declared({ storeStatus: status => status === 429 })
    const kept = ordering(shop, 'kept-429', () => answered(429))
    expect(told(await picky[engine].execute(executeRequest('kept-429'), kept.work))).toBe('executed 429 yes')
    expect(await shop.committed('kept-429')).toEqual(everything)
    const left = ordering(shop, 'left-201', () => answered(201))
    expect(told(await picky[engine].execute(executeRequest('left-201'), left.work))).toBe('executed 201 not-stored')
    expect(await shop.committed('left-201')).toEqual(nothing)
  })

  it('is a new request after its retention, with the next fence and the same downstream keys', async () => {
    const day = 24 * 3_600_000
    const grants: unknown[] = []
    const run = () =>
      operation[engine].execute(executeRequest('expired'), async x => {
        await shop.order(x.tx, 'expired')
        grants.push([x.fence, x.attempt, x.downstreamKey('charge'), x.downstreamKey('charge', 'opaque')])
        return answered(201, `run ${grants.length}`)
      })
    await run()
    await shop.advance(day - 60_000)
    expect(told(await run())).toBe('replayed 201')
    await shop.advance(120_000)
    expect(told(await run())).toBe('executed 201 yes')
    const [, , uuid, opaque] = grants[0] as unknown[]
    expect(grants).toEqual([
      [1, 1, uuid, opaque],
      [2, 2, uuid, opaque],
    ])
    expect(await shop.committed('expired')).toMatchObject({ orders: 2, keys: 1 })
    expect(await rowOf(shop.store, 'expired')).toMatchObject({ state: 'completed', fence: 2, attempts: 1 })
    const replay = await run()
    expect(replay.kind === 'replayed' && Buffer.from(replay.outcome.body ?? []).toString()).toBe('run 2')
  })

  it('gives values through JSON, to the first caller as to the retry', async () => {
    const at = new Date('2024-05-06T07:08:09.000Z')
    const values: [string, Storable, Storable][] = [
      ['date', { at }, { at: '2024-05-06T07:08:09.000Z' }],
      ['undefined', undefined, undefined],
      ['null', null, null],
      ['falsy', [0, '', false], [0, '', false]],
    ]
    for (const [name, given, expected] of values) {
      const run = () =>
        operation.run({ scope: 'acme', key: `value-${name}`, input: {} }, async ({ tx }) => {
          await shop.order(tx, `value-${name}`)
          return given
        })
      expect([await run(), await run()]).toEqual([expected, expected])
      expect(await shop.committed(`value-${name}`)).toEqual(everything)
    }
  })

  it('rejects a value that is not JSON and rolls back', async () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    // The types refuse the first three; JavaScript does not.
    const values = [() => {}, Symbol('s'), 10n, circular] as unknown as string[]
    for (const [at, value] of values.entries()) {
      const key = `not-json-${at}`
      const run = operation.run({ scope: 'acme', key, input: {} }, async ({ tx }) => {
        await shop.order(tx, key)
        return value
      })
      await expect(run).rejects.toThrow()
      expect(await shop.committed(key)).toEqual(nothing)
    }
  })

  it('gives a value over the cap to the first caller, tells the retry, and runs nothing again', async () => {
    const small = declared({ outcomeBytesMax: 100 })
    let calls = 0
    const run = () =>
      small.run({ scope: 'acme', key: 'too-large', input: {} }, async ({ tx }) => {
        calls += 1
        await shop.order(tx, 'too-large')
        return 'x'.repeat(200)
      })
    expect(await run()).toBe('x'.repeat(200))
    expect(await shop.committed('too-large')).toEqual(everything)
    await expect(run()).rejects.toMatchObject({ code: 'response-not-stored' })
    expect(calls).toBe(1)
  })

  it('keeps other keys, scopes and operations apart', async () => {
    const latchkey = latchkeyOn(shop.store)
    const orders = latchkey.atomic(operationName)
    const refunds = latchkey.atomic('refunds.create')
    const given = { scope: 'acme', key: 'apart', input: {} }
    const values = await Promise.all([
      orders.run(given, () => 1),
      orders.run({ ...given, scope: 'umbrella' }, () => 2),
      orders.run({ ...given, key: 'Apart' }, () => 3),
      refunds.run(given, () => 4),
    ])
    expect(values).toEqual([1, 2, 3, 4])
  })
}

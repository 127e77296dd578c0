import { afterEach, beforeEach, expect, it } from 'vitest'
import type pg from 'pg'
import { engine } from '../../src/engine/internal.ts'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { outcomeUnknown } from '../../src/ports/errors.ts'
import {
  answered,
  eventually,
  executeRequest,
  gate,
  latchkeyOn,
  operationName,
  rowOf,
  runRequest,
  told,
} from '../engine/fixture.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './fixture.ts'

describePostgres('atomic operations on a small pool', database => {
  let shop: Shop & { pool: pg.Pool }
  beforeEach(async () => {
    shop = await postgresShop(database.url, { max: 2 })
  })
  afterEach(() => shop.close())

  const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

  it('all finish, thirty at once on two connections, one of which stays free for others', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const keys = Array.from({ length: 30 }, (_, at) => `crowd-${at}`)
    const answers = await Promise.all(
      keys.map(key => {
        const handler = ordering(shop, key, async () => {
          await pause(10)
          return answered(201)
        })
        return operation[engine].execute(executeRequest(key), handler.work)
      }),
    )
    expect(answers.map(told)).toEqual(keys.map(() => 'executed 201 yes'))
    for (const key of keys) expect(await shop.committed(key)).toEqual(everything)
    expect(shop.pool.waitingCount).toBe(0)
  })

  it('need one transaction each, also when they have to wait for a place', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const keys = Array.from({ length: 30 }, (_, at) => `waiting-${at}`)
    let checkOuts = 0
    shop.pool.on('acquire', () => void (checkOuts += 1))
    await Promise.all(
      keys.map(key => {
        const handler = ordering(shop, key, () => answered(201))
        return operation[engine].execute(executeRequest(key), handler.work)
      }),
    )
    // And a few for the looks that they share.
    expect(checkOuts).toBeGreaterThanOrEqual(keys.length)
    expect(checkOuts).toBeLessThan(keys.length + 10)
  })

  it('are replayed while another one has the only place', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const stored = ordering(shop, 'stored', () => answered(201))
    await operation[engine].execute(executeRequest('stored'), stored.work)
    const door = gate()
    const slow = ordering(shop, 'slow', async () => {
      await door.opened
      return answered(201)
    })
    const first = operation[engine].execute(executeRequest('slow'), slow.work)
    await eventually(() => slow.calls === 1)
    expect(told(await operation[engine].execute(executeRequest('stored'), stored.work))).toBe('replayed 201')
    door.open()
    expect(told(await first)).toBe('executed 201 yes')
    expect(stored.calls).toBe(1)
  })

  it('all finish when every one of them needs a second transaction for its refusal', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const keys = Array.from({ length: 30 }, (_, at) => `refusals-${at}`)
    const answers = await Promise.all(
      keys.map(key => {
        const handler = ordering(shop, key, () => answered(422, 'no', new Error('no')))
        return operation[engine].execute(executeRequest(key), handler.work)
      }),
    )
    expect(answers.map(told)).toEqual(keys.map(() => 'executed 422 yes'))
  })

  it('wait for a twin without holding a connection', async () => {
    const latchkey = latchkeyOn(shop.store)
    const operation = latchkey.atomic(operationName, { onInProgress: 'wait', waitMs: 30_000 })
    const guarded = latchkey.guarded('guarded.create', { onFailure: 'hold' })
    const door = gate()
    const handler = ordering(shop, 'twins', async () => {
      await door.opened
      return answered(201)
    })
    const first = operation[engine].execute(executeRequest('twins'), handler.work)
    await eventually(() => handler.calls === 1)
    const twins = Array.from({ length: 20 }, () => operation[engine].execute(executeRequest('twins'), handler.work))
    // One connection is left for all the rest: another key gets through, again and again.
    for (let round = 0; round < 10; round += 1) {
      expect(await guarded.run(runRequest(`other-${round}`), () => round)).toBe(round)
      await pause(20)
    }
    // Between two looks nobody has anything of the pool's but the first.
    await eventually(() => shop.pool.waitingCount === 0 && shop.pool.totalCount - shop.pool.idleCount === 1)
    door.open()
    expect(told(await first)).toBe('executed 201 yes')
    expect((await Promise.all(twins)).map(told)).toEqual(twins.map(() => 'replayed 201'))
    expect(handler.calls).toBe(1)
  })

  it('answer 503 when the pool gives no connection, and the handler does not run behind the caller’s back', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const hogs = [await shop.pool.connect(), await shop.pool.connect()]
    const handler = ordering(shop, 'hogged', () => answered(201))
    const answer = await operation[engine].execute(executeRequest('hogged'), handler.work)
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'store-unavailable', retryAfterMs: 1_000 } })
    for (const hog of hogs) hog.release()
    // The abandoned one gets its connection now, and gives it back unused.
    await eventually(() => shop.pool.waitingCount === 0 && shop.pool.totalCount === shop.pool.idleCount)
    expect(handler.calls).toBe(0)
    expect(await shop.committed('hogged')).toEqual(nothing)
    expect(told(await operation[engine].execute(executeRequest('hogged'), handler.work))).toBe('executed 201 yes')
    expect(handler.calls).toBe(1)
  })

  it('answer 503 when the server does not answer the reservation', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const blocker = await shop.pool.connect()
    await blocker.query('begin; lock table latchkey.keys in access exclusive mode')
    const handler = ordering(shop, 'locked', () => answered(201))
    const answer = await operation[engine].execute(executeRequest('locked'), handler.work)
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'store-unavailable', retryAfterMs: 1_000 } })
    await blocker.query('rollback')
    blocker.release()
    await eventually(() => shop.pool.totalCount === shop.pool.idleCount)
    expect(handler.calls).toBe(0)
    expect(told(await operation[engine].execute(executeRequest('locked'), handler.work))).toBe('executed 201 yes')
  })

  it('answer that nobody knows when the server does not answer the outcome’s insert, and replay what it committed later', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const blocker = await shop.pool.connect()
    const handler = ordering(shop, 'late-lock', async () => {
      await blocker.query('begin; lock table latchkey.keys in exclusive mode')
      return answered(201)
    })
    const answer = await operation[engine].execute(executeRequest('late-lock'), handler.work)
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'outcome-unknown' } })
    await blocker.query('rollback')
    blocker.release()
    // The insert goes in one message with COMMIT: rows and answer are committed together, however late.
    await expect.poll(() => shop.committed('late-lock'), { timeout: 30_000 }).toEqual(everything)
    const retry = ordering(shop, 'late-lock', () => answered(201))
    expect(told(await operation[engine].execute(executeRequest('late-lock'), retry.work))).toBe('replayed 201')
    expect([handler.calls, retry.calls]).toEqual([1, 0])
  })

  it('remember an unknown also when the server does not answer the rollback', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const lost = outcomeUnknown('socket hang up')
    let asleep: Promise<unknown> | undefined
    const answer = await operation[engine].execute(executeRequest('no-rollback'), async ({ tx }) => {
      await shop.order(tx, 'no-rollback')
      // The rollback stands behind this one on its connection.
      asleep = (tx as pg.PoolClient).query('select pg_sleep(30)').catch(() => {})
      throw lost
    })
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'outcome-unknown', cause: lost } })
    expect(await rowOf(shop.store, 'no-rollback')).toMatchObject({ state: 'unknown' })
    await shop.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(30)' and pid <> pg_backend_pid()`,
    )
    await asleep
    expect(await shop.committed('no-rollback')).toEqual({ orders: 0, keys: 1, outcomes: 0 })
  })
})

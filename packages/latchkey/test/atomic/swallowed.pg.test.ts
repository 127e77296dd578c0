import { afterAll, beforeAll, expect, it } from 'vitest'
import type pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { engine } from '../../src/engine/internal.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import {
  answered,
  executeRequest,
  idOf,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  told,
} from '../engine/fixture.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './fixture.ts'

describePostgres('a handler that swallowed an error of its transaction', database => {
  let shop: Shop & { pool: pg.Pool }
  let operation: AtomicOperation<unknown>
  const telemetry = recordingTelemetry()
  const isCount = (told: unknown) => Array.isArray(told) && String(told[0]).startsWith('reserve.')
  beforeAll(async () => {
    shop = await postgresShop(database.url, { max: 3 })
    operation = latchkeyOn(shop.store, { telemetry }).atomic(operationName)
  })
  afterAll(() => shop.close())

  const failed = { kind: 'refused', refusal: { code: 'store-unavailable' } }
  const rolledBack = { kind: 'refused', refusal: { code: 'transaction-rolled-back' } }
  const fails = (tx: unknown) => (tx as pg.PoolClient).query('select 1/0').catch(() => {})

  async function expectHealthy(key: string): Promise<void> {
    const handler = ordering(shop, key, () => answered(201))
    expect(told(await operation[engine].execute(executeRequest(key), handler.work))).toBe('executed 201 yes')
    expect(await shop.committed(key)).toEqual(everything)
    expect(shop.pool.totalCount).toBe(shop.pool.idleCount)
  }

  it.each([201, 302])('gets a 500 for its %i, and the report names savepoints; nothing is kept', async status => {
    const key = `swallowed-${status}`
    const answer = await operation[engine].execute(executeRequest(key), async ({ tx }) => {
      await shop.order(tx, key)
      await fails(tx)
      return answered(status)
    })
    expect(answer).toMatchObject(rolledBack)
    const report = telemetry.told.find(each => JSON.stringify(each).includes(idOf(key)) && !isCount(each))
    expect(report).toMatchObject([
      'a handler misused its transaction',
      { operation: operationName, error: { message: expect.stringMatching(/put a savepoint around/) } },
    ])
    expect(await shop.committed(key)).toEqual(nothing)
    await expectHealthy(key)
  })

  it('keeps its 4xx alone: insert, catch the duplicate, answer 409', async () => {
    await shop.pool.query('create table seats (seat text primary key)')
    await shop.pool.query(`insert into seats values ('1A')`)
    let calls = 0
    const book = () =>
      operation[engine].execute(executeRequest('duplicate'), async ({ tx }) => {
        calls += 1
        await shop.order(tx, 'duplicate')
        const client = tx as pg.PoolClient
        try {
          await client.query(`insert into seats values ('1A')`)
        } catch (error) {
          if (error instanceof Error && 'code' in error && error.code === '23505') return answered(409, 'taken')
          throw error
        }
        return answered(201)
      })
    const connections = shop.pool.totalCount
    expect([told(await book()), told(await book())]).toEqual(['executed 409 yes', 'replayed 409'])
    expect(calls).toBe(1)
    expect(await shop.committed('duplicate')).toEqual({ orders: 0, keys: 1, outcomes: 1 })
    // No connection had to be thrown away for it.
    expect(shop.pool.totalCount).toBe(connections)
  })

  it('keeps its 4xx alone also when the failing query was not waited for', async () => {
    const answer = await operation[engine].execute(executeRequest('floating-409'), async ({ tx }) => {
      await shop.order(tx, 'floating-409')
      void fails(tx)
      return answered(409)
    })
    expect(told(answer)).toBe('executed 409 yes')
    expect(await shop.committed('floating-409')).toEqual({ orders: 0, keys: 1, outcomes: 1 })
  })

  it('does not keep a 4xx that is not of the stored kind', async () => {
    const answer = await operation[engine].execute(executeRequest('swallowed-429'), async ({ tx }) => {
      await fails(tx)
      return answered(429)
    })
    expect(told(answer)).toBe('executed 429 not-stored')
    expect(await shop.committed('swallowed-429')).toEqual(nothing)
  })

  it('does not close the door for others, however often it fails', async () => {
    for (let round = 0; round < 8; round += 1) {
      const answer = await operation[engine].execute(executeRequest(`again-${round}`), async ({ tx }) => {
        await fails(tx)
        return answered(201)
      })
      expect(answer).toMatchObject(rolledBack)
    }
    await expectHealthy('after-many')
  })

  it('is not undone by a query it did not wait for: the outcome’s insert and COMMIT are one message', async () => {
    const answer = await operation[engine].execute(executeRequest('floating'), async ({ tx }) => {
      await shop.order(tx, 'floating')
      // A forgotten await: the second query is sent after the handler has returned, behind the end of the transaction.
      const client = tx as pg.PoolClient
      void client.query('select 1').then(() => fails(tx))
      return answered(201)
    })
    expect(told(answer)).toBe('executed 201 yes')
    expect(await shop.committed('floating')).toEqual(everything)
    await expectHealthy('after-floating')
  })

  it('keeps no answer when a deferred constraint refuses the COMMIT, and does not close the door for others', async () => {
    await shop.pool.query(`create table owners (id int primary key);
      create table pets (owner int references owners deferrable initially deferred)`)
    for (let round = 0; round < 8; round += 1) {
      const answer = await operation[engine].execute(executeRequest(`orphan-${round}`), async ({ tx }) => {
        await shop.order(tx, `orphan-${round}`)
        await (tx as pg.PoolClient).query('insert into pets values (1)')
        return answered(201)
      })
      expect(answer).toMatchObject(failed)
      expect(await shop.committed(`orphan-${round}`)).toEqual(nothing)
    }
    await expectHealthy('after-orphans')
  })

  it('may use savepoints of its own, also around the failure', async () => {
    const answer = await operation[engine].execute(executeRequest('savepoint'), async ({ tx }) => {
      const client = tx as pg.PoolClient
      await shop.order(tx, 'savepoint')
      await client.query('savepoint here')
      await fails(tx)
      await client.query('rollback to savepoint here')
      return answered(201)
    })
    expect(told(answer)).toBe('executed 201 yes')
    expect(await shop.committed('savepoint')).toEqual(everything)
  })
})

import { afterAll, beforeAll, expect, it } from 'vitest'
import type pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import { answered, executeRequest, latchkeyOn, operationName, told } from '../engine/setup.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './shop.ts'

describePostgres('a handler that swallowed an error of its transaction', database => {
  let shop: Shop & { pool: pg.Pool }
  let operation: AtomicOperation<unknown>
  beforeAll(async () => {
    shop = await postgresShop(database.url, { max: 3 })
    operation = latchkeyOn(shop.store).atomic(operationName)
  })
  afterAll(() => shop.close())

  const failed = { kind: 'refused', refusal: { code: 'store-unavailable' } }
  const fails = (tx: unknown) => (tx as pg.PoolClient).query('select 1/0').catch(() => {})

  async function expectHealthy(key: string): Promise<void> {
    const handler = ordering(shop, key, () => answered(201))
    expect(told(await operation.execute(executeRequest(key), handler.work))).toBe('executed 201 yes')
    expect(await shop.committed(key)).toEqual(everything)
    expect(shop.pool.totalCount).toBe(shop.pool.idleCount)
  }

  it('is told of the failure; nothing is kept, and a better handler may run', async () => {
    const answer = await operation.execute(executeRequest('swallowed'), async ({ tx }) => {
      await shop.order(tx, 'swallowed')
      await fails(tx)
      return answered(201)
    })
    expect(answer).toMatchObject(failed)
    expect(await shop.committed('swallowed')).toEqual(nothing)
    await expectHealthy('swallowed')
  })

  it('cannot keep an answer without its rows by ending the transaction itself', async () => {
    for (const statement of ['rollback', 'commit']) {
      const answer = await operation.execute(executeRequest(statement), async ({ tx }) => {
        await shop.order(tx, statement)
        await (tx as pg.PoolClient).query(statement)
        return answered(201)
      })
      expect(answer).toMatchObject(failed)
    }
    expect(await shop.committed('rollback')).toEqual(nothing)
    await expectHealthy('rollback')
  })

  it('does not close the door for others, however often it fails', async () => {
    for (let round = 0; round < 8; round += 1) {
      const answer = await operation.execute(executeRequest(`again-${round}`), async ({ tx }) => {
        await fails(tx)
        return answered(201)
      })
      expect(answer).toMatchObject(failed)
    }
    await expectHealthy('after-many')
  })

  it('is not undone by a query it did not wait for: the outcome’s insert and COMMIT are one message', async () => {
    const answer = await operation.execute(executeRequest('floating'), async ({ tx }) => {
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
      const answer = await operation.execute(executeRequest(`orphan-${round}`), async ({ tx }) => {
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
    const answer = await operation.execute(executeRequest('savepoint'), async ({ tx }) => {
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

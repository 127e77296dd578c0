import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { engine } from '../../src/engine/internal.ts'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import { singleTenant } from '../../src/engine/request.ts'
import { type PgPool, postgresStore } from '../../src/stores/postgres/index.ts'
import { answered, executeRequest, latchkeyOn, operationName, told } from '../engine/fixture.ts'
import { itRunsOneOfMany } from './duplicates.cases.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './fixture.ts'

describe.each(['repeatable read', 'serializable'])('at %s', isolation => {
  const settings = `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`

  describePostgres('many callers of one atomic operation', database => {
    itRunsOneOfMany(() => postgresShop(database.url, { settings }), { snapshots: true })
  })

  describePostgres('an atomic operation', database => {
    let shop: Shop
    let pool: pg.Pool
    beforeAll(async () => {
      shop = await postgresShop(database.url, { settings })
      pool = new pg.Pool({ connectionString: database.url, options: settings, max: 5 })
      pool.on('error', () => {})
    })
    afterAll(async () => {
      await Promise.all([shop.close(), pool.end()])
    })

    it('runs at that level', async () => {
      const level = await latchkeyOn(shop.store)
        .atomic(operationName)
        .run({ scope: 'acme', key: 'level', input: {} }, async ({ tx }) => {
          // The shop's store is on a pool of pg.
          const { rows } = await (tx as pg.PoolClient).query('show transaction_isolation')
          return rows
        })
      expect(level).toEqual([{ transaction_isolation: isolation }])
    })

    it('replays the winner that its snapshot could not see, and keeps nothing of its own', async () => {
      const winner = ordering(shop, 'unseen', () => answered(201, 'the winner'))
      const late = snapshotBefore(pool, async () => {
        const answer = await latchkeyOn(shop.store)
          .atomic(operationName)
          [engine].execute(executeRequest('unseen'), winner.work)
        expect(told(answer)).toBe('executed 201 yes')
      })
      const loser = ordering(shop, 'unseen', () => answered(201, 'the loser'))
      const operation = createLatchkey({ store: postgresStore({ pool: late }), scope: singleTenant }).atomic(
        operationName,
      )
      const answer = await operation[engine].execute(executeRequest('unseen'), loser.work)
      expect(answer.kind === 'replayed' && Buffer.from(answer.outcome.body ?? []).toString()).toBe('the winner')
      expect([winner.calls, loser.calls]).toEqual([1, 1])
      expect(await shop.committed('unseen')).toEqual(everything)
    })

    it('tells a caller with another input that the winner it could not see had the key', async () => {
      const winner = ordering(shop, 'unseen-other', () => answered(201))
      const late = snapshotBefore(pool, async () => {
        await latchkeyOn(shop.store).atomic(operationName)[engine].execute(executeRequest('unseen-other'), winner.work)
      })
      const operation = createLatchkey({ store: postgresStore({ pool: late }), scope: singleTenant }).atomic(
        operationName,
      )
      const run = operation.run({ scope: 'acme', key: 'unseen-other', input: { amount: 2 } }, async ({ tx }) => {
        await shop.order(tx, 'unseen-other')
      })
      await expect(run).rejects.toMatchObject({ code: 'key-reused' })
      expect(await shop.committed('unseen-other')).toEqual(everything)
    })

    it('does not call the handler a second time when its business rows lost a race: rolled back, its own error told, the retry runs', async () => {
      await pool.query('create table if not exists stock (id int primary key, left_over int)')
      await pool.query('insert into stock values (1, 10) on conflict (id) do update set left_over = 10')
      const operation = latchkeyOn(shop.store).atomic(operationName)
      let calls = 0
      const take = () =>
        operation[engine].execute(executeRequest('stock'), async ({ tx }) => {
          calls += 1
          await shop.order(tx, 'stock')
          // The shop's store is on a pool of pg.
          const client = tx as pg.PoolClient
          await client.query('select left_over from stock')
          if (calls === 1) await pool.query('update stock set left_over = left_over - 1')
          await client.query('update stock set left_over = left_over - 1')
          return answered(201)
        })
      // The handler's own query fails (40001), so its error is the answer.
      expect(told(await take())).toBe('threw not-stored')
      expect(calls).toBe(1)
      expect(await shop.committed('stock')).toEqual(nothing)
      expect(told(await take())).toBe('executed 201 yes')
      expect((await pool.query('select left_over from stock')).rows).toEqual([{ left_over: 8 }])
    })
  })
})

/** The same pool, but each transaction takes its snapshot at once, and `meanwhile` runs before anything else is asked in it. */
function snapshotBefore(pool: pg.Pool, meanwhile: () => Promise<void>): PgPool {
  return {
    query: (text, values) => pool.query(text, values),
    async connect() {
      const client = await pool.connect()
      return {
        async query(text, values) {
          if (!text.startsWith('BEGIN;')) return client.query(text, values)
          const begun = await client.query('BEGIN; select 1')
          await meanwhile()
          return [begun, await client.query(text.slice('BEGIN;'.length))] as unknown as pg.QueryResult
        },
        release: error => client.release(error),
        on: (event, listener) => client.on(event, listener),
        removeListener: (event, listener) => client.removeListener(event, listener),
      }
    },
  }
}

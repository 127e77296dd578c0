import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely'
import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { engine } from '../../src/engine/internal.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import { executeRequest, latchkeyOn, operationName, rowOf, runRequest, told } from '../engine/fixture.ts'
import { everything, nothing, postgresShop, type Shop } from './fixture.ts'

/** `send`: any statement through the same transaction. */
type Work<T> = (
  tx: unknown,
  order: (sku: string) => Promise<unknown>,
  send: (text: string) => Promise<unknown>,
) => Promise<T>

/** A way to open a transaction: commits when `work` ends, rolls back when it throws. */
interface Opener {
  readonly name: string
  transact<T>(work: Work<T>): Promise<T>
}

describePostgres('an atomic operation in the caller’s own transaction', database => {
  let shop: Shop
  let pool: pg.Pool
  let operation: AtomicOperation<unknown>
  /** Every statement that went through the transaction in question. */
  let sent: string[] = []
  beforeAll(async () => {
    shop = await postgresShop(database.url)
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    pool.on('error', () => {})
    operation = latchkeyOn(shop.store).atomic(operationName)
  })
  beforeEach(() => {
    sent = []
  })
  afterAll(async () => {
    await Promise.all([shop.close(), pool.end()])
  })

  const logger = { logQuery: (text: string) => void sent.push(text) }
  const withPg: Opener = {
    name: 'a pg client',
    async transact(work) {
      const client = await pool.connect()
      const query = (text: string, values?: unknown[]) => (sent.push(text), client.query(text, values))
      await client.query('begin')
      try {
        const value = await work({ query }, sku => query('insert into orders values ($1)', [sku]), query)
        await client.query('commit')
        return value
      } catch (error) {
        await query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
  }
  const withDrizzle: Opener = {
    name: 'Drizzle',
    transact: work =>
      drizzle(pool, { logger }).transaction(tx =>
        work(
          tx,
          async sku => await tx.execute(sql`insert into orders values (${sku})`),
          async text => await tx.execute(sql.raw(text)),
        ),
      ),
  }
  const withKysely: Opener = {
    name: 'Kysely',
    transact: work =>
      new Kysely<{ orders: { sku: string } }>({
        dialect: new PostgresDialect({ pool }),
        log: ({ query }) => void sent.push(query.sql),
      })
        .transaction()
        .execute(tx =>
          work(
            tx,
            sku => tx.insertInto('orders').values({ sku }).execute(),
            text => kyselySql.raw(text).execute(tx),
          ),
        ),
  }

  describe.each([withPg, withDrizzle, withKysely])('of $name', ({ name, transact }) => {
    const key = (of: string) => `${of} ${name}`

    it('is visible to others with the caller’s commit, not before', async () => {
      const value = await transact(async (tx, order) => {
        const ran = await operation.run({ ...runRequest(key('commit')), tx }, async x => {
          expect(x.tx).toBe(tx)
          await order(key('commit'))
          return { fence: x.fence }
        })
        expect(await shop.committed(key('commit'))).toEqual(nothing)
        return ran
      })
      expect(value).toEqual({ fence: 1 })
      expect(await shop.committed(key('commit'))).toEqual(everything)
      expect(await rowOf(shop.store, key('commit'))).toMatchObject({ state: 'completed', fence: 1 })
    })

    it('vanishes with the caller’s rollback: key, order and outcome', async () => {
      const changedMind = new Error('changed my mind')
      const run = (afterwards: () => void) =>
        transact(async (tx, order) => {
          await operation.run({ ...runRequest(key('rollback')), tx }, () => order(key('rollback')).then(() => 'ran'))
          afterwards()
        })
      const undone = run(() => {
        throw changedMind
      })
      await expect(undone).rejects.toBe(changedMind)
      expect(await shop.committed(key('rollback'))).toEqual(nothing)
      await run(() => {})
      expect(await shop.committed(key('rollback'))).toEqual(everything)
    })

    it('replays the value without running, in the same transaction and in later ones', async () => {
      let calls = 0
      const ask = (tx: unknown, order: (sku: string) => Promise<unknown>) =>
        operation.run({ ...runRequest(key('replay')), tx }, async () => {
          calls += 1
          await order(key('replay'))
          return { order: calls, at: new Date(0) }
        })
      const values = await transact(async (tx, order) => [await ask(tx, order), await ask(tx, order)])
      values.push(await transact(ask))
      expect(values).toEqual(Array(3).fill({ order: 1, at: '1970-01-01T00:00:00.000Z' }))
      expect(calls).toBe(1)
      expect(await shop.committed(key('replay'))).toEqual(everything)
    })

    it('rejects with key-reused for another input, and the transaction may go on', async () => {
      await transact(tx => operation.run({ ...runRequest(key('reused')), tx }, () => 1))
      await transact(async (tx, order) => {
        const reused = operation.run({ ...runRequest(key('reused'), { amount: 2 }), tx }, () =>
          order('never').then(() => 1),
        )
        await expect(reused).rejects.toMatchObject({ name: 'LatchkeyError', code: 'key-reused' })
        await order(key('went on'))
      })
      expect(await shop.committed(key('went on'))).toMatchObject({ orders: 1 })
      expect(await shop.committed('never')).toMatchObject({ orders: 0 })
    })

    it('rejects with in-progress at once while another transaction holds the key', async () => {
      await transact(tx =>
        operation.run({ ...runRequest(key('held')), tx }, async () => {
          const twin = transact(other => operation.run({ ...runRequest(key('held')), tx: other }, () => 'twin'))
          await expect(twin).rejects.toMatchObject({ code: 'in-progress' })
          const elsewhere = await operation[engine].execute(executeRequest(key('held')), () =>
            Promise.reject(new Error('ran')),
          )
          expect(told(elsewhere)).toBe('refused in-progress')
        }),
      )
    })

    it('passes the handler’s error on unchanged, and sends nothing more in the transaction', async () => {
      const bug = new Error('bug in the handler')
      let before = 0
      const run = transact((tx, order) =>
        operation.run({ ...runRequest(key('threw')), tx }, async () => {
          await order(key('threw'))
          before = sent.length
          throw bug
        }),
      )
      await expect(run).rejects.toBe(bug)
      expect(before).toBeGreaterThan(3)
      // Kysely does not log its rollback.
      expect(sent.slice(before).filter(text => text !== 'rollback')).toEqual([])
      expect(await shop.committed(key('threw'))).toEqual(nothing)
    })

    it('passes the database’s error on, and sends nothing more in the transaction', async () => {
      let before = 0
      const run = transact((tx, _, send) =>
        operation.run({ ...runRequest(key('sql')), tx }, async () => {
          await send('select 1/0').finally(() => {
            before = sent.length
          })
        }),
      )
      const error: unknown = await run.catch((cause: unknown) => cause)
      // Drizzle wraps it.
      expect(error instanceof Error && error.cause ? error.cause : error).toMatchObject({ code: '22012' })
      expect(sent.slice(before).filter(text => text !== 'rollback')).toEqual([])
      expect(await shop.committed(key('sql'))).toEqual(nothing)
    })
  })

  it('cannot record over a winner that its snapshot does not see: the error is the caller’s, its rows go', async () => {
    const client = await pool.connect()
    await client.query('begin isolation level repeatable read')
    await client.query('select 1')
    await operation.run(runRequest('snapshot'), async ({ tx }) => shop.order(tx, 'snapshot').then(() => 'winner'))
    const loser = operation.run({ ...runRequest('snapshot'), tx: client }, async () => {
      await client.query('insert into orders values ($1)', ['snapshot'])
      return 'loser'
    })
    await expect(loser).rejects.toMatchObject({ cause: { code: '40001' } })
    // Whatever the caller says now, the server rolls back.
    expect((await client.query('commit')).command).toBe('ROLLBACK')
    client.release()
    expect(await shop.committed('snapshot')).toEqual(everything)
    expect(await operation.run(runRequest('snapshot'), () => 'again')).toBe('winner')
  })

  it('is refused at once, without running, when what is handed in is no transaction', async () => {
    const outside = await pool.connect()
    const ended = await pool.connect()
    await ended.query('begin')
    await ended.query('commit')
    const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) })
    const impostors = [pool, outside, ended, drizzle(pool), kysely, {}, { query: 'text' }, null, 'tx', 7, () => {}]
    let calls = 0
    for (const tx of impostors) {
      const run = operation.run({ ...runRequest('impostor'), tx }, () => (calls += 1))
      await expect(run).rejects.toMatchObject({ name: 'LatchkeyError', code: 'not-a-transaction' })
    }
    for (const client of [outside, ended]) client.release()
    expect(calls).toBe(0)
    expect(await shop.committed('impostor')).toEqual(nothing)
  })
})

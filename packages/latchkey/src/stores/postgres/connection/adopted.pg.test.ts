import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql } from 'drizzle-orm'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { uuidText } from '../../../ports/clock.ts'
import type { AtomicRequest, Transactor } from '../../../ports/store.ts'
import { postgresStore, type PostgresStore } from '../index.ts'

describePostgres('a transaction handed in', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  let transactor: Transactor<pg.PoolClient>
  let asked: AtomicRequest
  let keys = 0

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
    if (store.transactor === undefined) throw new Error('the postgres store has a transactor')
    transactor = store.transactor
    await pool.query('create table orders (sku text not null)')
  })
  beforeEach(async () => {
    keys += 1
    asked = atomicRequest(keys)
    await pool.query('truncate orders')
  })
  afterAll(() => pool.end())

  const orders = async () => (await pool.query<{ sku: string }>('select sku from orders')).rows.map(row => row.sku)
  const refused = { code: 'not-a-transaction' }

  /** What the engine does with a caller's transaction: everything but ending it. */
  async function recordIn(tx: unknown): Promise<void> {
    const adopted = await transactor.adopt(tx)
    expect(adopted).toBe(tx)
    expect(await transactor.reserve(adopted, asked)).toEqual({ kind: 'free', fence: 0, from: 'none' })
    expect(await transactor.record(adopted, asked, answer, 0)).toBe('recorded')
    // The second look, in the same transaction, reads the row back through the caller's own driver.
    const again = await transactor.reserve(adopted, asked)
    if (again.kind !== 'seen') throw new Error(`expected to see the row, found ${again.kind}`)
    expect(Buffer.from(again.record.outcome?.body ?? []).equals(answer.body)).toBe(true)
    expect(again.record.completedAtMs).toBeTypeOf('number')
  }

  async function expectTogether(): Promise<void> {
    expect(await orders()).toEqual(['mine'])
    expect((await store.read(asked.identity.id))?.state).toBe('completed')
  }

  it('commits with a pg client', async () => {
    const client = await pool.connect()
    await client.query('begin')
    await recordIn(client)
    await client.query(`insert into orders values ('mine')`)
    expect(await store.read(asked.identity.id)).toBeUndefined()
    await client.query('commit')
    client.release()
    await expectTogether()
  })

  it('commits with a pg client that is no pool’s', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query('begin')
    await recordIn(client)
    await client.query(`insert into orders values ('mine')`)
    await client.query('commit')
    await client.end()
    await expectTogether()
  })

  it('commits with a Drizzle transaction', async () => {
    await drizzle(pool).transaction(async tx => {
      await recordIn(tx)
      await tx.execute(sql`insert into orders values ('mine')`)
    })
    await expectTogether()
  })

  it('commits with a nested Drizzle transaction', async () => {
    await drizzle(pool).transaction(tx =>
      tx.transaction(async nested => {
        await recordIn(nested)
        await nested.execute(sql`insert into orders values ('mine')`)
      }),
    )
    await expectTogether()
  })

  it('rolls back with a Drizzle transaction', async () => {
    const rolledBack = drizzle(pool).transaction(async tx => {
      await recordIn(tx)
      throw new Error('business says no')
    })
    await expect(rolledBack).rejects.toThrow('business says no')
    expect(await store.read(asked.identity.id)).toBeUndefined()
  })

  it('commits with a Kysely transaction, whose plugins do not rename our columns', async () => {
    const db = new Kysely<{ orders: { sku: string } }>({
      dialect: new PostgresDialect({ pool }),
      plugins: [new CamelCasePlugin()],
    })
    await db.transaction().execute(async tx => {
      await recordIn(tx)
      await tx.insertInto('orders').values({ sku: 'mine' }).execute()
    })
    await expectTogether()
  })

  it('commits with a controlled Kysely transaction', async () => {
    const db = new Kysely<{ orders: { sku: string } }>({ dialect: new PostgresDialect({ pool }) })
    const tx = await db.startTransaction().execute()
    await recordIn(tx)
    await tx.insertInto('orders').values({ sku: 'mine' }).execute()
    await tx.commit().execute()
    await expectTogether()
    await expect(transactor.adopt(tx)).rejects.toThrow()
  })

  it('is refused when it is a pool, the database object of a query builder, or a client outside a transaction', async () => {
    const client = await pool.connect()
    const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) })
    for (const impostor of [pool, client, drizzle(pool), kysely]) {
      await expect(transactor.adopt(impostor)).rejects.toMatchObject(refused)
    }
    await kysely.connection().execute(async bound => {
      await expect(transactor.adopt(bound)).rejects.toMatchObject(refused)
    })
    client.release()
  })

  it('is refused, with the reason, when an earlier error has already ended it', async () => {
    const client = await pool.connect()
    await client.query('begin')
    await client.query('select 1/0').catch(() => {})
    await expect(transactor.adopt(client)).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('an earlier error'),
    })
    await client.query('rollback')
    client.release()
  })

  it('leaves no savepoint behind', async () => {
    const client = await pool.connect()
    await client.query('begin')
    await transactor.adopt(client)
    await expect(client.query('rollback to savepoint latchkey_proof')).rejects.toMatchObject({ code: '3B001' })
    await client.query('rollback')
    client.release()
  })
})

const answer = { status: 201, headers: [], body: Buffer.from([0, 255, 10, 0]), version: 1 }

function atomicRequest(key: number): AtomicRequest {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(key, 0)
  return {
    identity: { id: uuidText(bytes), scope: 'tenant', operation: 'orders.create' },
    claimId: uuidText(Buffer.alloc(16, key)),
    fingerprint: Buffer.from('same'),
    retentionMs: 3_600_000,
    description: undefined,
  }
}

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLatchkey, type JsonOf, type Scope, singleTenant, type Storable } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { type Libraries, type Library, openLibraries, type OpenTransaction } from './libraries.ts'
import { createTables } from './tables.ts'

type Run = <T extends Storable>(
  request: { readonly scope: Scope; readonly key: string; readonly input: unknown; readonly tx: unknown },
  handler: () => Promise<T>,
) => Promise<JsonOf<T>>

/** The tests are named before there is a database. */
const names = [
  'pg',
  'postgres.js',
  'Drizzle on pg',
  'Drizzle on postgres.js',
  'Kysely',
  'Knex',
  'TypeORM',
  'MikroORM',
  'Prisma',
]

describePostgres('a transaction of your own, handed in as tx,', database => {
  let libraries: Libraries
  /** Through the store on pg, and through the one on postgres.js. */
  let runs: readonly Run[]
  beforeAll(async () => {
    libraries = await openLibraries(database.url)
    const { pool, sql } = libraries
    await createTables(pool)
    const store = postgresStore({ pool })
    await store.migrate()
    runs = [
      createLatchkey({ store, scope: singleTenant }).atomic('orders.create').run,
      createLatchkey({ store: postgresStore({ sql }), scope: singleTenant }).atomic('orders.create').run,
    ]
  })
  beforeEach(() => libraries.pool.query('truncate orders, parcels, latchkey.keys'))
  afterAll(() => libraries.close())

  const count = async () => {
    const { rows } = await libraries.pool.query(
      'select (select count(*)::int from orders) as orders, (select count(*)::int from latchkey.keys) as keys',
    )
    return rows[0]
  }
  const one = { orders: 1, keys: 1 }
  const none = { orders: 0, keys: 0 }

  describe.each(names)('of %s', name => {
    let library: Library
    beforeAll(() => {
      const found = libraries.all.find(each => each.name === name)
      if (found === undefined) throw new Error(`${name} is one of the libraries`)
      library = found
    })
    const order = ({ tx, send }: OpenTransaction, run = runs[0]) =>
      run?.({ scope: singleTenant(), key: 'order-7', input: { sku: 'tea' }, tx }, async () => {
        await send(`insert into orders (sku) values ('tea')`)
        return { bytes: 'é\u0000', large: 'x'.repeat(20_000) }
      })

    it('commits with the key, and a retry gets the value', async () => {
      const first = await library.transact(async open => order(open))
      expect(await count()).toEqual(one)
      expect(await library.transact(async open => order(open))).toEqual(first)
      expect(await library.transact(async open => order(open, runs[1]))).toEqual(first)
      expect(await count()).toEqual(one)
    })

    it('takes the key with it when it is rolled back', async () => {
      const failing = library.transact(async open => {
        await order(open)
        throw new Error('business says no')
      })
      await expect(failing).rejects.toThrow('business says no')
      expect(await count()).toEqual(none)
    })

    it('commits with the key where a nested one is handed in', async () => {
      const { nested = library.transact } = library
      await nested(async open => order(open))
      expect(await count()).toEqual(one)
      await nested(async open => order(open))
      expect(await count()).toEqual(one)
    })

    it('refuses a duplicate while the first is open, and never waits for it', async () => {
      await library.transact(async first => {
        await order(first)
        await expect(library.transact(async second => order(second))).rejects.toMatchObject({ code: 'in-progress' })
      })
      expect(await count()).toEqual(one)
    })

    it('is refused, with the reason, when an earlier error has already ended it', async () => {
      let refusal: unknown
      const broken = library.transact(async open => {
        await Promise.resolve(open.send('select 1/0')).catch(() => {})
        await order(open)?.catch((error: unknown) => (refusal = error))
        throw new Error('as it should')
      })
      await expect(broken).rejects.toThrow()
      expect(refusal).toMatchObject({ code: 'not-a-transaction', message: expect.stringContaining('an earlier error') })
      expect(await count()).toEqual(none)
    })
  })
})

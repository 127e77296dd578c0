import { type Context, Hono } from 'hono'
import { type Generated, Kysely, PostgresDialect } from 'kysely'
import { createLatchkey, singleTenant } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'

interface Tables {
  orders: { id: Generated<number>; sku: string }
  parcels: { order_id: number }
}

/** Kysely asks a pool for its connections. This one has the transaction's and no other. */
function kyselyOn(tx: pg.PoolClient): Kysely<Tables> {
  const pool = { connect: async () => tx, end: async () => {}, options: {} }
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}

export async function openShop(url: string) {
  const pool = new pg.Pool({ connectionString: url })
  const store = postgresStore({ pool })
  await store.migrate()
  const latchkey = createLatchkey({ store, scope: singleTenant })

  const app = new Hono()
  app.post(
    '/orders',
    idempotent(latchkey.atomic('orders.create'), async (c: Context, { tx }) => {
      const { sku } = await c.req.json<{ sku: string }>()
      const db = kyselyOn(tx)
      const order = await db.insertInto('orders').values({ sku }).returningAll().executeTakeFirstOrThrow()
      await db.transaction().execute(inner => inner.insertInto('parcels').values({ order_id: order.id }).execute())
      if (sku === 'coffee') throw new Error('coffee is sold out')
      return c.json(order, 201)
    }),
  )
  return { app, close: () => pool.end() }
}

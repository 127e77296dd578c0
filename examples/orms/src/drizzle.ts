import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core'
import { type Context, Hono } from 'hono'
import { createLatchkey, singleTenant } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'

const orders = pgTable('orders', { id: serial().primaryKey(), sku: text().notNull() })
const parcels = pgTable('parcels', { orderId: integer('order_id').notNull() })

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
      const db = drizzle(tx)
      const [order] = await db.insert(orders).values({ sku }).returning()
      await db.transaction(inner => inner.insert(parcels).values({ orderId: order?.id ?? 0 }))
      if (sku === 'coffee') throw new Error('coffee is sold out')
      return c.json(order, 201)
    }),
  )
  return { app, close: () => pool.end() }
}

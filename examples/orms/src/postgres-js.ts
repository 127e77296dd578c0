import { type Context, Hono } from 'hono'
import { createLatchkey, singleTenant } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'
import postgres from 'postgres'

export async function openShop(url: string) {
  const sql = postgres(url)
  const store = postgresStore({ sql })
  await store.migrate()
  const latchkey = createLatchkey({ store, scope: singleTenant })

  const app = new Hono()
  app.post(
    '/orders',
    idempotent(latchkey.atomic('orders.create'), async (c: Context, { tx }) => {
      const { sku } = await c.req.json<{ sku: string }>()
      const [order] = await tx<{ id: number }[]>`insert into orders (sku) values (${sku}) returning id, sku`
      if (order !== undefined) await tx.savepoint(inner => inner`insert into parcels (order_id) values (${order.id})`)
      if (sku === 'coffee') throw new Error('coffee is sold out')
      return c.json(order, 201)
    }),
  )
  return { app, close: () => sql.end() }
}

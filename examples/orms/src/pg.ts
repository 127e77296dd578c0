import { type Context, Hono } from 'hono'
import { createLatchkey, singleTenant } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'

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
      const { rows } = await tx.query('insert into orders (sku) values ($1) returning id, sku', [sku])
      await ship(tx, rows[0].id)
      if (sku === 'coffee') throw new Error('coffee is sold out')
      return c.json(rows[0], 201)
    }),
  )

  /** Code that opens a transaction of its own: inside `tx` it is a savepoint. */
  async function ship(client: pg.PoolClient, order: number): Promise<void> {
    await client.query('begin')
    await client.query('insert into parcels (order_id) values ($1)', [order])
    await client.query('commit')
  }
  return { app, close: () => pool.end() }
}

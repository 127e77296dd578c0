import { type Context, Hono } from 'hono'
import createKnex from 'knex'
import { createLatchkey, singleTenant } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'

export async function openShop(url: string) {
  const pool = new pg.Pool({ connectionString: url })
  const store = postgresStore({ pool })
  await store.migrate()
  const latchkey = createLatchkey({ store, scope: singleTenant })
  const knex = createKnex({ client: 'pg', connection: url })

  const app = new Hono()
  app.post(
    '/orders',
    idempotent(latchkey.atomic('orders.create'), async (c: Context, { tx }) => {
      const { sku } = await c.req.json<{ sku: string }>()
      const placeOrder = async (trx: typeof knex) => {
        const [order] = await trx('orders').insert({ sku }).returning(['id', 'sku'])
        await trx.transaction(inner => inner('parcels').insert({ order_id: order.id }))
        if (sku === 'coffee') throw new Error('coffee is sold out')
        return order
      }
      return c.json(await knex.transaction(placeOrder, { connection: tx }), 201)
    }),
  )
  return { app, close: () => Promise.all([knex.destroy(), pool.end()]) }
}

import { defineEntity, MikroORM, p } from '@mikro-orm/postgresql'
import { Hono } from 'hono'
import { createLatchkey, singleTenant } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'

const Order = defineEntity({
  name: 'Order',
  tableName: 'orders',
  properties: { id: p.integer().primary().autoincrement(), sku: p.string() },
})

export async function openShop(url: string) {
  const pool = new pg.Pool({ connectionString: url })
  const store = postgresStore({ pool })
  await store.migrate()
  const latchkey = createLatchkey({ store, scope: singleTenant })
  const createOrder = latchkey.atomic('orders.create')
  const orm = await MikroORM.init({ clientUrl: url, entities: [Order] })

  const app = new Hono()
  app.post('/orders', async c => {
    const input = await c.req.json<{ sku: string }>()
    const key = c.req.header('idempotency-key') ?? ''
    const order = await orm.em.fork().transactional(em => {
      const tx = em.getTransactionContext<unknown>()
      return createOrder.run({ scope: singleTenant(), key, input, tx }, async () => {
        const created = em.create(Order, { sku: input.sku })
        // Before `run` records the answer: what is flushed with the commit comes too late to be in it.
        await em.flush()
        await em.transactional(inner => inner.execute('insert into parcels (order_id) values (?)', [created.id]))
        if (input.sku === 'coffee') throw new Error('coffee is sold out')
        return { id: created.id, sku: created.sku }
      })
    })
    return c.json(order, 201)
  })
  return { app, close: () => Promise.all([orm.close(), pool.end()]) }
}

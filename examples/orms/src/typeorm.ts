import 'reflect-metadata'
import { Hono } from 'hono'
import { createLatchkey, singleTenant } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { DataSource, EntitySchema } from 'typeorm'

const Order = new EntitySchema<{ id: number; sku: string }>({
  name: 'Order',
  tableName: 'orders',
  columns: { id: { type: Number, primary: true, generated: true }, sku: { type: String } },
})

export async function openShop(url: string) {
  const pool = new pg.Pool({ connectionString: url })
  const store = postgresStore({ pool })
  await store.migrate()
  const latchkey = createLatchkey({ store, scope: singleTenant })
  const createOrder = latchkey.atomic('orders.create')
  const dataSource = await new DataSource({ type: 'postgres', url, entities: [Order] }).initialize()

  const app = new Hono()
  app.post('/orders', async c => {
    const input = await c.req.json<{ sku: string }>()
    const key = c.req.header('idempotency-key') ?? ''
    const order = await dataSource.transaction(async manager => {
      // The client of pg that this transaction runs on.
      const tx: unknown = await manager.queryRunner?.connect()
      return createOrder.run({ scope: singleTenant(), key, input, tx }, async () => {
        const saved = await manager.save(Order, { sku: input.sku })
        await manager.transaction(inner => inner.query('insert into parcels (order_id) values ($1)', [saved.id]))
        if (input.sku === 'coffee') throw new Error('coffee is sold out')
        return saved
      })
    })
    return c.json(order, 201)
  })
  return { app, close: () => Promise.all([dataSource.destroy(), pool.end()]) }
}

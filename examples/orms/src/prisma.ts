import { PrismaPg } from '@prisma/adapter-pg'
import { Hono } from 'hono'
import { createLatchkey, singleTenant } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { PrismaClient } from '../generated/client.ts'

export async function openShop(url: string) {
  const pool = new pg.Pool({ connectionString: url })
  const store = postgresStore({ pool })
  await store.migrate()
  const latchkey = createLatchkey({ store, scope: singleTenant })
  const createOrder = latchkey.atomic('orders.create')
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })

  const app = new Hono()
  app.post('/orders', async c => {
    const input = await c.req.json<{ sku: string }>()
    const key = c.req.header('idempotency-key') ?? ''
    const order = await prisma.$transaction(tx =>
      createOrder.run({ scope: singleTenant(), key, input, tx }, async () => {
        const created = await tx.order.create({ data: { sku: input.sku } })
        await tx.$transaction(inner => inner.$executeRaw`insert into parcels (order_id) values (${created.id})`)
        if (input.sku === 'coffee') throw new Error('coffee is sold out')
        return created
      }),
    )
    return c.json(order, 201)
  })
  return { app, close: () => prisma.$disconnect().then(() => pool.end()) }
}

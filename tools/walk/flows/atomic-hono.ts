/** An atomic POST on Hono. */
import { type Context, Hono } from 'hono'
import { idempotent } from 'latchkey/http/hono'
import { expectStatus, openLatchkey, report } from '../flow.ts'

await report(async databaseUrl => {
  const { latchkey, pool, close } = await openLatchkey<Context>(databaseUrl)
  await pool.query('create table if not exists orders (key text primary key)')
  const orders = latchkey.atomic('orders.create')
  const app = new Hono()
  app.post(
    '/orders',
    idempotent(orders, async (c, { tx, key }) => {
      await tx.query('insert into orders (key) values ($1)', [key])
      return c.json({ key }, 201)
    }),
  )
  return {
    async request(key) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': `"${key}"` }
      const response = await app.request('/orders', { method: 'POST', headers, body: '{"item":"lamp"}' })
      await response.arrayBuffer()
      expectStatus(response, 201)
    },
    close,
  }
})

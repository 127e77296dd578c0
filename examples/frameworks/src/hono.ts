import { serve } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { createLatchkey } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { sqliteStore } from 'latchkey/stores/sqlite'
import Database from 'libsql'

new Database('shop.db').exec('create table if not exists orders (id integer primary key, sku text)')
const store = sqliteStore({ path: 'shop.db', open: path => new Database(path) })
await store.migrate()
const latchkey = createLatchkey({ store, scope: (c: Context) => c.req.header('x-account') ?? '' })

const app = new Hono()
app.post(
  '/orders',
  idempotent(latchkey.atomic('orders.create'), async (c, { tx }) => {
    const { sku } = await c.req.json<{ sku: string }>()
    const { lastInsertRowid } = tx.run('insert into orders (sku) values (?)', [sku])
    return c.json({ id: Number(lastInsertRowid), sku }, 201)
  }),
)

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, address => console.log('listening', address))

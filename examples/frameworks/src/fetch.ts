import { serve } from '@hono/node-server'
import { createLatchkey } from 'latchkey'
import { idempotent } from 'latchkey/http/fetch'
import { sqliteStore } from 'latchkey/stores/sqlite'
import Database from 'libsql'

new Database('shop.db').exec('create table if not exists orders (id integer primary key, sku text)')
const store = sqliteStore({ path: 'shop.db', open: path => new Database(path) })
await store.migrate()
const latchkey = createLatchkey({ store, scope: (request: Request) => request.headers.get('x-account') ?? '' })

/** What Next calls for a POST to a route, and other servers for every request. */
export const POST = idempotent(latchkey.atomic('orders.create'), async (request, { tx }) => {
  const { sku } = (await request.json()) as { sku: string }
  const { lastInsertRowid } = tx.run('insert into orders (sku) values (?)', [sku])
  return Response.json({ id: Number(lastInsertRowid), sku }, { status: 201 })
})

const port = Number(process.env.PORT ?? 3000)
serve({ fetch: request => POST(request), port }, address => console.log('listening', address))

import Fastify, { type FastifyRequest } from 'fastify'
import { createLatchkey } from 'latchkey'
import { idempotent, latchkeyFastify } from 'latchkey/http/fastify'
import { sqliteStore } from 'latchkey/stores/sqlite'
import Database from 'libsql'

new Database('shop.db').exec('create table if not exists orders (id integer primary key, sku text)')
const store = sqliteStore({ path: 'shop.db', open: path => new Database(path) })
await store.migrate()
const latchkey = createLatchkey({
  store,
  scope: (request: FastifyRequest) => String(request.headers['x-account'] ?? ''),
})

const app = Fastify()
await app.register(latchkeyFastify) // awaited: routes added before it is loaded are refused at startup
app.post(
  '/orders',
  idempotent(latchkey.atomic('orders.create'), async (request, reply, { tx }) => {
    const { sku } = request.body as { sku: string }
    const { lastInsertRowid } = tx.run('insert into orders (sku) values (?)', [sku])
    return reply.code(201).send({ id: Number(lastInsertRowid), sku })
  }),
)

await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('listening', app.server.address())

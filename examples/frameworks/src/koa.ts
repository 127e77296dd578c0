import { bodyParser } from '@koa/bodyparser'
import Koa, { type Context } from 'koa'
import { createLatchkey } from 'latchkey'
import { captureBody, idempotent } from 'latchkey/http/koa'
import { sqliteStore } from 'latchkey/stores/sqlite'
import Database from 'libsql'

new Database('shop.db').exec('create table if not exists orders (id integer primary key, sku text)')
const store = sqliteStore({ path: 'shop.db', open: path => new Database(path) })
await store.migrate()
const latchkey = createLatchkey({ store, scope: (ctx: Context) => ctx.get('x-account') })

const app = new Koa()
app.use(captureBody()) // before the parser: it keeps the raw bytes, by which a retry is recognised
app.use(bodyParser())
app.use(
  idempotent(latchkey.atomic('orders.create'), async (ctx, { tx }) => {
    const { sku } = ctx.request.body as { sku: string }
    const { lastInsertRowid } = tx.run('insert into orders (sku) values (?)', [sku])
    ctx.status = 201
    ctx.body = { id: Number(lastInsertRowid), sku }
  }),
)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('listening', server.address()))

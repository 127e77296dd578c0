import express, { type Request, type Response } from 'express'
import { createLatchkey } from 'latchkey'
import { captureBody, idempotent } from 'latchkey/http/express'
import { sqliteStore } from 'latchkey/stores/sqlite'
import Database from 'libsql'

new Database('shop.db').exec('create table if not exists orders (id integer primary key, sku text)')
const store = sqliteStore({ path: 'shop.db', open: path => new Database(path) })
await store.migrate()
const latchkey = createLatchkey({ store, scope: (req: Request) => req.get('x-account') ?? '' })

const app = express()
app.use(captureBody()) // before the parser: it keeps the raw bytes, by which a retry is recognised
app.use(express.json())
app.post(
  '/orders',
  idempotent(latchkey.atomic('orders.create'), async (req, res: Response, { tx }) => {
    const { lastInsertRowid } = tx.run('insert into orders (sku) values (?)', [req.body.sku])
    res.status(201).json({ id: Number(lastInsertRowid), sku: req.body.sku })
  }),
)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('listening', server.address()))

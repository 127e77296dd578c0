/** What a copy of the database gives away of the answers in it. */
import { type Context, Hono } from 'hono'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLatchkey, type Latchkey, silentTelemetry } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { searchTables } from './database-text.ts'

const secret = {
  'set-cookie': 'session=marker-of-a-session; HttpOnly',
  authorization: 'Bearer marker-of-a-bearer',
  'www-authenticate': 'Digest nonce="marker-of-a-nonce"',
  'x-auth-token': 'marker-of-a-token',
  'x-csrf-token': 'marker-of-a-csrf-token',
  'x-ticket': 'marker-of-a-ticket',
}
const markers = Object.values(secret).map(value => /marker-[a-z-]+/.exec(value)?.[0] ?? '')

describePostgres('the answers in a copy of the database', database => {
  let pool: pg.Pool
  let latchkey: Latchkey<pg.PoolClient, Context>
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 4 })
    pool.on('error', () => {})
    const store = postgresStore({ pool })
    await store.migrate()
    const http = { neverStore: ['X-Ticket'] }
    latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false, http })
  })
  afterAll(async () => {
    await latchkey.close()
    await pool.end()
  })

  it('hold no credential of a header, nor a raw key; the first client alone gets them', async () => {
    const app = new Hono()
    const handler = (c: Context) => {
      for (const [name, value] of Object.entries(secret)) c.header(name, value)
      c.header('x-order', 'order-of-the-client')
      return c.json({ iban: 'marker-of-a-body' }, 201)
    }
    app.post('/orders', idempotent(latchkey.atomic('orders.create'), handler))
    const post = () =>
      app.request('/orders', { method: 'POST', headers: { 'idempotency-key': 'marker-of-a-key' }, body: '{}' })
    const [first, again] = [await post(), await post()]
    expect(Object.keys(secret).filter(name => !first.headers.has(name))).toEqual([])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(Object.keys(secret).filter(name => again.headers.has(name))).toEqual([])
    // The body and other headers are stored as they are, which also shows that the search finds what is there.
    const words = [...markers, 'marker-of-a-key', 'marker-of-a-body', 'order-of-the-client']
    expect(await searchTables(pool, words)).toEqual(['marker-of-a-body', 'order-of-the-client'])
  })
})

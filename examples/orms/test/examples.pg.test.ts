import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import * as drizzle from '../src/drizzle.ts'
import * as drizzleOnPostgresJs from '../src/drizzle-postgres-js.ts'
import * as knex from '../src/knex.ts'
import * as kysely from '../src/kysely.ts'
import * as mikroOrm from '../src/mikro-orm.ts'
import * as plain from '../src/pg.ts'
import * as postgresJs from '../src/postgres-js.ts'
import * as prisma from '../src/prisma.ts'
import * as typeorm from '../src/typeorm.ts'
import { createTables } from './tables.ts'

type Shop = Awaited<ReturnType<typeof plain.openShop | typeof postgresJs.openShop | typeof knex.openShop>>

describePostgres('the examples of the guide', database => {
  let outside: pg.Pool
  beforeAll(async () => {
    outside = new pg.Pool({ connectionString: database.url, max: 2 })
    outside.on('error', () => {})
    await createTables(outside)
  })
  afterAll(() => outside.end())

  describe.each([
    ['pg', plain],
    ['postgres.js', postgresJs],
    ['Drizzle on pg', drizzle],
    ['Drizzle on postgres.js', drizzleOnPostgresJs],
    ['Kysely', kysely],
    ['Knex', knex],
    ['TypeORM', typeorm],
    ['MikroORM', mikroOrm],
    ['Prisma', prisma],
  ])('%s', (name, { openShop }) => {
    let shop: Shop
    beforeAll(async () => {
      shop = await openShop(database.url)
      // Hono writes what a handler throws to the console.
      shop.app.onError((error, c) => c.json({ error: error.message }, 500))
    })
    beforeEach(() => outside.query('truncate orders, parcels'))
    afterAll(() => shop.close())

    const post = async (key: string, sku: string) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': `${name} ${key}`.replaceAll(' ', '-') }
      const response = await shop.app.request('/orders', { method: 'POST', headers, body: JSON.stringify({ sku }) })
      // What the routes answer with, or a problem.
      return { status: response.status, body: (await response.json()) as { id?: number } }
    }
    const rows = async () => {
      const { rows: orders } = await outside.query('select id, sku from orders order by id')
      const { rows: parcels } = await outside.query('select order_id from parcels')
      return { orders, parcels }
    }

    it('creates one order, with the parcel of the nested transaction, and gives every retry its answer', async () => {
      const first = await post('once', 'tea')
      expect(first).toEqual({ status: 201, body: { id: expect.any(Number), sku: 'tea' } })
      expect(await post('once', 'tea')).toEqual(first)
      expect(await post('once', 'tea')).toEqual(first)
      expect(await rows()).toEqual({ orders: [first.body], parcels: [{ order_id: first.body.id }] })
    })

    it('creates one order for ten requests at once', async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => post('at once', 'tea')))
      const { orders } = await rows()
      expect(orders).toHaveLength(1)
      for (const { status, body } of answers) if (status === 201) expect(body).toEqual(orders[0])
      expect(answers.map(({ status }) => status)).toContain(201)
      expect(await post('at once', 'tea')).toEqual({ status: 201, body: orders[0] })
    })

    it('leaves nothing when the handler throws, so that a retry starts anew', async () => {
      expect((await post('thrown', 'coffee')).status).toBe(500)
      expect(await rows()).toEqual({ orders: [], parcels: [] })
      expect((await post('thrown', 'coffee')).body).toMatchObject({ error: 'coffee is sold out' })
      expect(await rows()).toEqual({ orders: [], parcels: [] })
    })

    it('refuses the same key with another order', async () => {
      await post('reused', 'tea')
      expect((await post('reused', 'milk')).status).toBeGreaterThanOrEqual(400)
      expect((await rows()).orders).toMatchObject([{ sku: 'tea' }])
    })
  })
})

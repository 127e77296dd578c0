/** A database as operators find it after a bad night: millions of completed keys, and some thousands that are not. */
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { preload } from '../growth/preload.ts'
import { scope } from '../server/operations.ts'
import { actOnRows, reportFleet } from './acts.ts'
import { addMessages, addOverdue, addUnknown, openShop } from './shop.ts'

export interface Filling {
  readonly url: string
  readonly keys: number
  readonly unknown: number
}

export interface Filled {
  readonly preloadSeconds: number
  readonly restSeconds: number
}

/** Multiples of a hundred, as they are made. */
const messages = { parked: 500, waiting: 5_000 }
/** Over how long the unknown rows became so. */
const spreadHours = 12

export async function fillForOperators({ url, keys, unknown }: Filling): Promise<Filled> {
  const pool = new pg.Pool({ connectionString: url, max: 20 })
  try {
    const store = postgresStore({ pool })
    await store.migrate()
    const shop = openShop(store)
    const { latchkey } = shop
    const startedAt = performance.now()
    await shop.order.run({ scope, key: 'seed', input: { sku: 'tea' } }, () => ({ id: 'or_1', note: 'x'.repeat(130) }))
    await preload({ url, rows: keys, expired: 0 })
    const preloadedAt = performance.now()
    await addUnknown(shop, unknown)
    await pool.query(`update latchkey.due set since = since - interval '${spreadHours} hours' * random()`)
    await actOnRows(latchkey)
    await addOverdue(store, unknown / 100)
    await addMessages({ store, pool, latchkey }, messages)
    await reportFleet(store, pool)
    await pool.query('vacuum (analyze)')
    await latchkey.close()
    const endedAt = performance.now()
    return { preloadSeconds: (preloadedAt - startedAt) / 1_000, restSeconds: (endedAt - preloadedAt) / 1_000 }
  } finally {
    await pool.end()
  }
}

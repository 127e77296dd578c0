import pg from 'pg'
import { PostgresIdempotencyStore } from 'steadykey'
import { steadykeyPeer } from './steadykey.js'

export async function open(place) {
  const pool = new pg.Pool({ connectionString: place, max: 10 })
  pool.on('error', () => {})
  const store = new PostgresIdempotencyStore(pool, { tableName: 'steadykey' })
  return steadykeyPeer(store, async () => Number((await pool.query('select count(*) as n from steadykey')).rows[0].n))
}

import pg from 'pg'
import { PostgresIdempotencyStore } from 'steadykey'
import { steadykeyPeer } from './steadykey.js'

export async function open(place) {
  // As Latchkey's own pool in this benchmark: connections are kept between its turns.
  const pool = new pg.Pool({ connectionString: place, max: 10, idleTimeoutMillis: 0 })
  pool.on('error', () => {})
  const store = new PostgresIdempotencyStore(pool, { tableName: 'steadykey' })
  return steadykeyPeer(store, async () => Number((await pool.query('select count(*) as n from steadykey')).rows[0].n))
}

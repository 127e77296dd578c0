/** PostgreSQL, in a database of its own. */
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import type { Backend, Stored } from './backend.ts'
import type { Insert } from '../order.ts'

export async function postgresBackend(url: string): Promise<Backend> {
  // Kept between its turns: while the others are measured it is idle for longer than a pool keeps a connection.
  const pool = new pg.Pool({ connectionString: url, max: 10, idleTimeoutMillis: 0 })
  // The database is dropped by force when the section ends.
  pool.on('error', () => {})
  const clients = new Set<pg.PoolClient>()
  pool.on('connect', client => clients.add(client)).on('remove', client => clients.delete(client))
  const store = postgresStore({ pool })
  await store.migrate()
  await pool.query('create table if not exists orders (id bigserial primary key, sku text not null)')
  const insertOn =
    (client: pg.PoolClient): Insert =>
    async sku => {
      const { rows } = await client.query<{ id: string }>('insert into orders (sku) values ($1) returning id', [sku])
      return Number(rows[0]?.id)
    }
  return {
    store,
    pool,
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const value = await work(insertOn(client))
        await client.query('commit')
        return value
      } finally {
        client.release()
      }
    },
    // The transactor's clients come from this pool.
    insertIn: tx => insertOn(tx as pg.PoolClient),
    stored: () => storedInPostgres(pool),
    async settings() {
      // Connections that were idle for long are gone.
      await pool.query('select 1')
      return postgresSettings([...clients])
    },
  }
}

async function storedInPostgres(pool: pg.Pool): Promise<Stored> {
  const { rows } = await pool.query<Record<keyof Stored, string>>(
    `select count(*) as rows, count(*) filter (where state = 2) as completed,
       (select count(*) from orders) as "businessRows" from latchkey.keys`,
  )
  const [row] = rows
  return { rows: Number(row?.rows), completed: Number(row?.completed), businessRows: Number(row?.businessRows) }
}

/**
 * Asked on every connection that the store has open, the one that writes batches among them: each could have settings of
 * its own.
 */
async function postgresSettings(clients: readonly pg.PoolClient[]): Promise<string> {
  const names = [
    'server_version',
    'fsync',
    'synchronous_commit',
    'full_page_writes',
    'wal_sync_method',
    'shared_buffers',
  ]
  const columns = names.map(name => `current_setting('${name}') as ${name}`).join(', ')
  const answers = await Promise.all(clients.map(client => client.query<Record<string, string>>(`select ${columns}`)))
  const told = names.map(name => `${name}=${[...new Set(answers.map(({ rows }) => rows[0]?.[name]))].join('|')}`)
  return `PostgreSQL, as every connection of the store sees it: ${told.join(' ')}`
}

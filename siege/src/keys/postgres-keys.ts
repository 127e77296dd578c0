/** The keys in PostgreSQL, with the rows of atomic operations and of steps beside them. */
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import { startPostgres } from '../../../test/servers/postgres.ts'
import type { Rows } from '../evidence.ts'
import { operations } from '../app/operations.ts'
import { damagedScope, type KeyServer } from './key-server.ts'

const tables = `create table orders (id uuid not null, attempt int not null, fence bigint not null); create table steps (id uuid not null);`

const rowsQuery = `select count(*) filter (where state = 4) as unknown, count(*) filter (where state in (0, 1)) as unfinished
  from latchkey.keys where scope not like '%${damagedScope}%'`

export async function postgresKeys(): Promise<KeyServer> {
  const server = await startPostgres()
  const pool = new pg.Pool({ connectionString: server.url, max: 2 })
  await postgresStore({ pool }).migrate()
  await pool.query(tables)
  return {
    url: server.url,
    async rows() {
      const { rows } = await pool.query<Record<keyof Rows, string>>(rowsQuery)
      return { unknown: Number(rows[0]?.unknown), unfinished: Number(rows[0]?.unfinished) }
    },
    async committed() {
      const { rows } = await pool.query<{ id: string; attempt: number; fence: string }>('select * from orders')
      return rows.map(row => ({ ...row, operation: operations.atomic, fence: Number(row.fence) }))
    },
    async stop() {
      await pool.end()
      await server.stop()
    },
  }
}

import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { timesCases } from './times.cases.ts'

describePostgres('the times of operations, on PostgreSQL', database =>
  timesCases(async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 8 })
    pool.on('error', () => {})
    await pool.query('drop schema if exists latchkey cascade')
    const store = postgresStore({ pool })
    await store.migrate()
    return { store, close: () => pool.end() }
  }),
)

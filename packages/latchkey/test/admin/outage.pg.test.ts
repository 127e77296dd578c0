import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { outageCases } from './outage.cases.ts'

describePostgres('after an outage, on PostgreSQL', database =>
  outageCases(async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 8 })
    pool.on('error', () => {})
    await pool.query('drop schema if exists latchkey cascade')
    const store = postgresStore({ pool })
    await store.migrate()
    return { store, close: () => pool.end() }
  }),
)

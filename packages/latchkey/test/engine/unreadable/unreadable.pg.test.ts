import { afterAll, beforeAll } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { postgresHarness } from '../../postgres/fixture.ts'
import { unreadableCases } from './unreadable.cases.ts'

describePostgres('rows that cannot be read, on PostgreSQL', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 10 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  unreadableCases(() => postgresHarness(pool))
})

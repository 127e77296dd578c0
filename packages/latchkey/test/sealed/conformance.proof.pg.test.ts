import pg from 'pg'
import { afterAll, beforeAll, it } from 'vitest'
import { runOutboxCases, runStoreCases, runUnreadableCases } from '@latchkey/conformance'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresHarness } from '../postgres/fixture.ts'
import { sealedHarness, sealedSelection } from './harness.ts'

describePostgres('the postgres store, encrypted:', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 30 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())
  const open = () => sealedHarness(postgresHarness(pool))

  runStoreCases(open, it, sealedSelection)
  runUnreadableCases(open, it)
  runOutboxCases(open, it)
})

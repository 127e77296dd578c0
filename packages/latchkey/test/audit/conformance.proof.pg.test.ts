import pg from 'pg'
import { afterAll, beforeAll, it } from 'vitest'
import { runStoreCases } from '@latchkey/conformance'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresHarness } from '../postgres/fixture.ts'
import { checkStoreModel } from '../properties/store-properties.ts'
import { recordingHarness } from './harness.ts'

describePostgres('the postgres store that records lines:', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 30 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())
  const open = () => recordingHarness(postgresHarness(pool))

  runStoreCases(open, it, { elsewhere: ['outbox'] })

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 10 }), 300_000)
})

import { afterAll, beforeAll, it } from 'vitest'
import pg from 'pg'
import { runUnreadableCases } from '@latchkey/conformance'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { itConforms } from '../../../test/postgres/conformance.cases.ts'
import { postgresHarness } from '../../../test/postgres/fixture.ts'

describePostgres('the postgres store conforms:', database => itConforms(database, true))

// All other cases without batching are a part of the proof. These take a moment, and each claim has a statement of its own for them.
describePostgres('the postgres store without batching conforms:', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 10 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  runUnreadableCases(() => postgresHarness(pool, false), it)
})

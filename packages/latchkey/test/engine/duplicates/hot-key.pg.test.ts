import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { hotKeyCases, patienceMs } from './hot-key.cases.ts'
import { countStatements } from '../../postgres/count-statements.ts'

/** Thousands of calls for one key are a few statements. One for each call would be thousands, and each would wait for the last. */
const statementsMax = 1_000

describePostgres('a key that thousands ask for, on PostgreSQL', database => {
  let pool: pg.Pool
  let sent: { count: number }
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 10 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    sent = countStatements(pool)
    await postgresStore({ pool }).migrate()
  })
  afterAll(() => pool.end())
  beforeEach(() => void (sent.count = 0))
  afterEach(() => expect(sent.count).toBeLessThan(statementsMax))

  hotKeyCases(() => postgresStore({ pool, batching: { timeoutMs: patienceMs } }))
})

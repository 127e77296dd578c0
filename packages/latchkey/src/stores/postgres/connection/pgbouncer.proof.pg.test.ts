import { afterAll, beforeAll, it } from 'vitest'
import pg from 'pg'
import { runStoreCases } from '@latchkey/conformance'
import { describePgBouncer } from '../../../../../../test/servers/pgbouncer.ts'
import { postgresHarness } from '../../../../test/postgres/fixture.ts'

describePgBouncer('the postgres store behind PgBouncer in transaction mode conforms:', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 30 })
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  runStoreCases(() => postgresHarness(pool), it, { elsewhere: ['outbox'] })
})

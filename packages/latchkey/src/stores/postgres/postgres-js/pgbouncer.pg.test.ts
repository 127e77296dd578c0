import { afterAll, beforeAll, it } from 'vitest'
import pg from 'pg'
import postgres from 'postgres'
import { describePgBouncer } from '../../../../../../test/servers/pgbouncer.ts'
import { postgresHarness, throughPostgresJs } from '../../../../test/postgres/fixture.ts'
import { runStoreCases } from '../../../conformance/store.ts'

describePgBouncer('the postgres store on postgres.js behind PgBouncer conforms:', database => {
  let pool: pg.Pool
  let sql: postgres.Sql
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    pool.on('error', () => {})
    sql = postgres(database.url, { max: 30, prepare: false })
  })
  afterAll(async () => {
    await sql.end({ timeout: 5 })
    await pool.end()
  })

  runStoreCases(() => postgresHarness(pool, true, throughPostgresJs(sql)), it)
})

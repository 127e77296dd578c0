import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import postgres from 'postgres'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { postgresHarness, throughPostgresJs } from '../../../../test/postgres/fixture.ts'
import { type Overloads, plantOverloads } from '../../../../test/postgres/overloads.ts'
import { checkStoreModel } from '../../../../test/properties/store-properties.ts'
import { runStoreCases, runUnreadableCases } from '@latchkey/conformance'

describePostgres('the postgres store on postgres.js conforms:', database => {
  let pool: pg.Pool
  let sql: postgres.Sql
  let overloads: Overloads | undefined
  const notices: string[] = []
  beforeAll(async () => {
    // For the tables of the cases themselves.
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    pool.on('error', () => {})
    // Names and numbers as an application may want them, and not as the store reads them.
    sql = postgres(database.url, {
      max: 30,
      transform: postgres.camel,
      types: { bigint: postgres.BigInt },
      onnotice: ({ message = '' }) => void notices.push(message),
    })
    overloads = await plantOverloads(database.url, pool)
  })
  afterAll(async () => {
    await sql.end({ timeout: 5 })
    await pool.end()
    await overloads?.drop()
  })
  const open = () => postgresHarness(pool, true, throughPostgresJs(sql))

  runStoreCases(open, it, { elsewhere: ['outbox'] })
  runUnreadableCases(open, it)

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 10 }), 300_000)

  it('has called nothing in all of this that another role put into the schema public', () => {
    expect(notices.filter(notice => notice.startsWith('enemy: '))).toEqual([])
  })
})

import { afterAll, beforeAll, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { runStoreCases } from '../../conformance/store.ts'
import type { StoreHarness } from '../../conformance/store-harness.ts'
import { openPostgresStore } from './store.ts'

describePostgres('the postgres store conforms:', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 30 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  runStoreCases(() => postgresHarness(pool), it)

  it(
    'agrees with the model, whatever callers do',
    () => checkStoreModel(() => postgresHarness(pool), { numRuns: 20 }),
    300_000,
  )
})

let schemas = 0

/** A schema for each case. Its clock is the server's, put forward by what a table of the harness says. */
async function postgresHarness(pool: pg.Pool): Promise<StoreHarness> {
  schemas += 1
  const schema = `case-${schemas}`
  await pool.query(`
    create schema "${schema}";
    create table "${schema}".business (value text not null);
    create table "${schema}".forward (ms float8 not null);
    create function "${schema}".test_clock() returns timestamptz language sql volatile as
      $$ select clock_timestamp() + (select coalesce(sum(ms), 0) from "${schema}".forward) * interval '1 millisecond' $$`)
  const open = () => openPostgresStore({ pool, schema, clock: `"${schema}".test_clock()` })
  await open().migrate()
  return {
    open: async () => open(),
    advance: async ms => void (await pool.query(`insert into "${schema}".forward values ($1)`, [ms])),
    business: {
      // The transactor hands out the pool's own clients.
      insert: async (tx, value) =>
        void (await (tx as pg.PoolClient).query(`insert into "${schema}".business values ($1)`, [value])),
      values: async () =>
        (await pool.query<{ value: string }>(`select value from "${schema}".business order by value`)).rows.map(
          row => row.value,
        ),
    },
    close: async () => void (await pool.query(`drop schema "${schema}" cascade`)),
  }
}

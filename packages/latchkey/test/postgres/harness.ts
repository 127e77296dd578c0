/** The store of a conformance case, for the suites that run them directly and through a pooler. */
import type pg from 'pg'
import type { StoreHarness } from '../../src/conformance/store-harness.ts'
import { dialect } from '../../src/stores/postgres/dialect.ts'
import { addKeyRules } from './key-rules.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'

let schemas = 0

/** A schema for each case. Its clock is the server's, put forward by what a table of the harness says. */
export async function postgresHarness(pool: pg.Pool, batching = true): Promise<StoreHarness> {
  schemas += 1
  const schema = `case-${schemas}`
  await pool.query(`
    create schema "${schema}";
    create table "${schema}".business (value text not null);
    create table "${schema}".forward (ms float8 not null);
    create function "${schema}".test_clock() returns timestamptz language sql volatile as
      $$ select clock_timestamp() + (select coalesce(sum(ms), 0) from "${schema}".forward) * interval '1 millisecond' $$`)
  const open = () => openPostgresStore({ pool, schema, batching, clock: `"${schema}".test_clock()` })
  await open().migrate()
  // What the statements must never break is left to the tests to enforce.
  await pool.query(addKeyRules(dialect(schema)))
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

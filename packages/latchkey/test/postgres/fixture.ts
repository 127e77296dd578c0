/** The store of a conformance case, for the suites that run them directly and through a pooler. */
import type pg from 'pg'
import type { Damage, SpoilableHarness } from '@latchkey/conformance'
import type postgres from 'postgres'
import type { PgPool } from '../../src/stores/postgres/driver.ts'
import type { SqlRoot } from '../../src/stores/postgres/postgres-js/driver.ts'
import { postgresJsPool } from '../../src/stores/postgres/postgres-js/pool.ts'
import { textLiteral } from '../../src/stores/postgres/sql/literal.ts'
import { dialect } from '../../src/stores/postgres/sql/names.ts'
import { addKeyRules } from './key-rules.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'

let schemas = 0

const keyDamage: Readonly<Record<Exclude<Damage, 'step'>, string>> = {
  state: 'state = 7',
  recovery: 'recovery = 9',
  'outcome-format': `outcome = '\\xf0'::bytea || substring(outcome from 2)`,
  'outcome-cut': 'outcome = substring(outcome from 1 for 2)',
  'outcome-headers': 'outcome = null',
  'outcome-missing': 'outcome = null',
}

/** The rules of the table are a matter of this version, too. */
function dropRules(schema: string): string {
  return `do $$ declare rule record; begin
    for rule in select conrelid::regclass as at, conname from pg_constraint
      where contype = 'c' and connamespace = '"${schema}"'::regnamespace and conrelid::regclass::text ~ '(keys|steps)$'
    loop execute format('alter table %s drop constraint %I', rule.at, rule.conname); end loop;
  end $$`
}

function spoilStatement(schema: string, damage: Damage): string {
  if (damage === 'step') return `update "${schema}".steps set state = 7 where id = $1`
  const spoiled = `update "${schema}".keys set ${keyDamage[damage]} where id = $1 returning id, fence`
  if (damage !== 'outcome-headers') return spoiled
  return `with spoiled as (${spoiled}) insert into "${schema}".outcomes (id, fence, status, version, headers, body)
    select id, fence, 201, 1, 'no list', null from spoiled`
}

/** How handlers write, and through which driver the store works. */
export interface HarnessDriver {
  readonly pool: PgPool
  send(tx: unknown, command: string): Promise<unknown>
}

const throughPg = (pool: pg.Pool): HarnessDriver => ({
  pool,
  // The store hands out clients of pg.
  send: (tx, command) => (tx as pg.PoolClient).query(command),
})

export const throughPostgresJs = (sql: postgres.Sql): HarnessDriver => ({
  pool: postgresJsPool(sql as unknown as SqlRoot),
  // The store hands out the sql of its transactions.
  send: (tx, command) => (tx as postgres.TransactionSql).unsafe(command),
})

/** A schema for each case. Its clock is the server's, put forward by what a table of the harness says. */
export async function postgresHarness(
  pool: pg.Pool,
  batching = true,
  driver: HarnessDriver = throughPg(pool),
): Promise<SpoilableHarness> {
  schemas += 1
  const schema = `case-${schemas}`
  await pool.query(`
    create schema "${schema}";
    create table "${schema}".business (value text not null);
    create table "${schema}".forward (ms float8 not null);
    create function "${schema}".test_clock() returns timestamptz language sql volatile as
      $$ select clock_timestamp() + (select coalesce(sum(ms), float8 '0') from "${schema}".forward) * interval '1 millisecond' $$`)
  const open = () => openPostgresStore({ pool: driver.pool, schema, batching, clock: `"${schema}".test_clock()` })
  await open().migrate()
  // What the statements must never break is left to the tests to enforce.
  await pool.query(addKeyRules(dialect(schema)))
  return {
    open: async () => open(),
    spoil: async (id, damage) => {
      await pool.query(dropRules(schema))
      await pool.query(spoilStatement(schema, damage), [id])
    },
    advance: async ms => void (await pool.query(`insert into "${schema}".forward values ($1)`, [ms])),
    business: {
      send: async (tx, command) => void (await driver.send(tx, command)),
      insert: async (tx, value) =>
        void (await driver.send(tx, `insert into "${schema}".business values (${textLiteral(value)})`)),
      values: async () =>
        (await pool.query<{ value: string }>(`select value from "${schema}".business order by value`)).rows.map(
          row => row.value,
        ),
    },
    close: async () => void (await pool.query(`drop schema "${schema}" cascade`)),
  }
}

/**
 * Fills Latchkey's tables as a day of traffic would: millions of completed rows, each the copy of one that a server really
 * wrote, under the identity of a key that can be replayed.
 */
import pg from 'pg'
import { replayedPrefix } from '../load/request.ts'
import { operationName, scope } from '../server/operations.ts'

export interface Preload {
  readonly url: string
  readonly rows: number
  /** How many of them, the last ones, are past their retention. */
  readonly expired: number
}

/** Over how long the rows are spread, inside a retention of 24 h. */
const spreadHours = 20
/** Few enough that two statements at once do not drift apart, enough that starting them costs nothing. */
const sliceRows = 100_000

interface Table {
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

export async function preload({ url, rows, expired }: Preload): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  try {
    const tables = await tablesWithId(pool)
    // Each on a connection of its own: the identity is computed, so the tables need not wait for each other.
    await Promise.all(tables.map(table => fill(pool, table, { rows, expired })))
    await Promise.all(tables.map(({ name }) => pool.query(`vacuum (analyze) ${name}`)))
    await pool.query('checkpoint')
  } finally {
    await pool.end()
  }
}

/** The tables in which the one row that is there has an identity: keys, outcomes, and whatever a later version adds. */
async function tablesWithId(pool: pg.Pool): Promise<Table[]> {
  const { rows } = await pool.query<{ name: string; columns: Table['columns'] }>(
    `select format('%I.%I', c.table_schema, c.table_name) as name,
       json_agg(json_build_object('name', c.column_name, 'type', c.data_type) order by c.ordinal_position) as columns
     from information_schema.columns c where c.table_schema = 'latchkey' and c.is_generated = 'NEVER'
     group by c.table_schema, c.table_name
     having bool_or(c.column_name = 'id' and c.data_type = 'uuid')`,
  )
  const filled = await Promise.all(
    rows.map(async table => ({ table, found: await pool.query(`select from ${table.name}`) })),
  )
  return filled.flatMap(({ table, found }) => (found.rowCount === 1 ? [table] : []))
}

async function fill(pool: pg.Pool, { name, columns }: Table, { rows, expired }: Omit<Preload, 'url'>): Promise<void> {
  const rebuild = await dropIndexes(pool, name)
  const names = columns.map(column => column.name).join(', ')
  const values = columns.map(column => valueOf(column, { rows, expired })).join(', ')
  const insert = (from: number, to: number) =>
    pool.query(
      `insert into ${name} (${names})
       select ${values} from (select * from ${name} limit 1) t, generate_series(${from}::bigint, ${to - 1}::bigint, 2) n`,
    )
  // One statement keeps one core busy. In slices, even and odd: rows of one time lie together, as they do in life.
  for (let from = 0; from < rows; from += sliceRows) {
    const to = Math.min(rows, from + sliceRows)
    await Promise.all([insert(from, to), insert(from + 1, to)])
  }
  for (const statement of rebuild) await pool.query(statement)
}

function valueOf({ name, type }: Table['columns'][number], { rows, expired }: Omit<Preload, 'url'>): string {
  if (name === 'id') return identityOf(`'${replayedPrefix}' || n`)
  if (type !== 'timestamp with time zone') return `t.${name}`
  const aged = `t.${name} - interval '${spreadHours} hours' * (1 - n::float8 / ${rows})`
  return name === 'expires_at'
    ? `case when n >= ${rows - expired} then t.${name} - interval '2 days' else ${aged} end`
    : aged
}

/** What Latchkey computes from scope, operation and key, in SQL; replays of preloaded keys fail where the two differ. */
function identityOf(key: string): string {
  const before = ['latchkey.identity.v1', '1', scope, 'operation', operationName]
  const framed = before.map(part => `${part.length}:${part}`).join('')
  return `encode(substr(sha256(convert_to('${framed}' || length(${key}) || ':' || ${key}, 'UTF8')), 1, 16), 'hex')::uuid`
}

/** An index is built several times faster at the end than row by row. Answers with what builds them again. */
async function dropIndexes(pool: pg.Pool, table: string): Promise<string[]> {
  const keys = await pool.query<{ drop: string; build: string }>(
    `select format('alter table ${table} drop constraint %I', conname) as drop,
       format('alter table ${table} add constraint %I %s', conname, pg_get_constraintdef(oid)) as build
     from pg_constraint where conrelid = '${table}'::regclass and contype in ('p', 'u')`,
  )
  for (const { drop } of keys.rows) await pool.query(drop)
  const indexes = await pool.query<{ drop: string; build: string }>(
    `select format('drop index %s', indexrelid::regclass) as drop, pg_get_indexdef(indexrelid) as build
     from pg_index where indrelid = '${table}'::regclass`,
  )
  for (const { drop } of indexes.rows) await pool.query(drop)
  return [...keys.rows, ...indexes.rows].map(({ build }) => build)
}

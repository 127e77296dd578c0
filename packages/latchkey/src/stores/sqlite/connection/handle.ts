/** One shape over the drivers' differences. Each was measured; the comments say what goes wrong without the line. */
import type { SqliteDatabase, SqliteParameter, SqliteRow, SqliteStatement, SqliteValue } from '../driver.ts'

export interface Handle {
  exec(sql: string): void
  /** Any one statement, also one that gives no rows. Never cached: for statements that are not ours. */
  query(sql: string, parameters?: readonly SqliteParameter[]): readonly SqliteRow[]
  /** As `query`, prepared once. For our own fixed statements. */
  rows(sql: string, parameters?: readonly SqliteParameter[]): readonly SqliteRow[]
  /** A fixed statement of ours that only writes: how many rows. Half the price of the same with RETURNING. */
  run(sql: string, parameters: readonly SqliteParameter[]): number
  inTransaction(): boolean
  /** The end of an execution also writes a line of the trail. */
  readonly recordsLines?: boolean
  /** The store's clock, where several writes share one look at it. */
  nowMs?(): number
  close(): void
}

export function handleOf(database: SqliteDatabase): Handle {
  const prepared = new Map<string, SqliteStatement>()
  const prepare = (sql: string): SqliteStatement => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = database.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
  // A list for libsql, which takes a single blob given alone for an object of named parameters; a list is just that to
  // node:sqlite, which wants the values themselves.
  const asList = 'inTransaction' in database
  const bound = (parameters: readonly SqliteParameter[]) => {
    const values = parameters.map(bindable)
    // The drivers type their parameters differently, see driver.ts; the values were checked one by one.
    return (asList ? [values] : values) as never[]
  }
  // Always `all`: libsql's `get` leaves the statement standing on its row, so the connection keeps an old snapshot and
  // later reads on it do not see what others committed.
  const all = (statement: SqliteStatement, parameters: readonly SqliteParameter[]) =>
    statement.all(...bound(parameters)).map(plainRow)
  return {
    exec: sql => void database.exec(sql),
    query: (sql, parameters = []) => all(database.prepare(sql), parameters),
    rows: (sql, parameters = []) => all(prepare(sql), parameters),
    run: (sql, parameters) => Number(prepare(sql).run(...bound(parameters)).changes),
    inTransaction: () => isInTransaction(database),
    close: () => {
      prepared.clear()
      database.close()
    },
  }
}

/** libsql ends the whole process when it is handed a boolean, so nothing unknown is passed on to a driver. */
function bindable(value: unknown, at: number): SqliteValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  const kind = typeof value
  if (value === null || kind === 'number' || kind === 'bigint' || kind === 'string' || value instanceof Uint8Array) {
    // Exactly the members of SqliteValue were let through.
    return value as SqliteValue
  }
  const name = kind === 'object' ? (value?.constructor?.name ?? 'object') : kind
  throw new TypeError(
    `SQL parameter ${at + 1} is of type ${name}: SQLite takes null, numbers, bigints, strings, booleans and Uint8Array`,
  )
}

function plainRow(given: unknown): SqliteRow {
  // A row is an object of columns in every driver, and ours alone. node:sqlite's has no prototype: it is copied.
  const row = given as Record<string, unknown>
  const plain = Object.getPrototypeOf(row) === null ? { ...row } : row
  for (const name in plain) {
    const value = plain[name]
    // libsql gives blobs of `all` as ArrayBuffer.
    if (value instanceof ArrayBuffer) plain[name] = new Uint8Array(value)
  }
  // The drivers give nothing but SQLite's five storage classes.
  return plain as SqliteRow
}

export function isInTransaction(database: SqliteDatabase): boolean {
  const known = database.inTransaction ?? database.isTransaction
  if (known !== undefined) return known
  // node:sqlite before Node 22.16 does not report it; SQLite refuses a transaction within a transaction.
  try {
    database.exec('BEGIN')
  } catch {
    return true
  }
  database.exec('ROLLBACK')
  return false
}

/** Whether something handed in has the shape of a driver's handle. */
export function isDatabase(value: unknown): value is SqliteDatabase {
  if (typeof value !== 'object' || value === null) return false
  return ['exec', 'prepare', 'close'].every(name => typeof Reflect.get(value, name) === 'function')
}

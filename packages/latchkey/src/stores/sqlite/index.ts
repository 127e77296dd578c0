import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable, count, having, text, waitedMs } from '../../ports/option-kinds.ts'
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from './store.ts'

export type { SqliteDatabase, SqliteParameter, SqliteRow, SqliteStatement, SqliteValue } from './driver.ts'
export type { SqliteTx } from './atomic/transaction.ts'
export type { MigrateOptions, Migration } from '../shared/migrations.ts'
export type { SqliteStore, SqliteStoreOptions } from './store.ts'
export { sqliteMigrations } from './migrations/index.ts'

const sqliteChecks: ChecksOf<SqliteStoreOptions> = {
  // The empty one is a database in memory: refused where it is opened.
  path: { ...text, fits: value => typeof value === 'string' },
  open: callable,
  transactionMs: waitedMs,
  waitMs: waitedMs,
  waitersMax: count,
  clock: having('a clock', 'monotonicMs', 'after', 'random'),
}

/** SQLite: the embedded store. Durable, transactional, and safe between the processes of one machine. */
export function sqliteStore(options: SqliteStoreOptions): SqliteStore {
  checkOptions('sqliteStore', options, sqliteChecks)
  if (options.path === undefined) throw misconfigured('sqliteStore: path is missing: the database file')
  if (options.open === undefined) throw misconfigured('sqliteStore: open is missing: path => new Database(path)')
  return openSqliteStore(options)
}

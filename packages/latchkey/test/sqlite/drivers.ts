/** The SQLite drivers that this Node can load: libsql everywhere, and its own `node:sqlite` from Node 22. */
import Database from 'libsql'
import type { SqliteDatabase } from '../../src/stores/sqlite/driver.ts'
import type { Open } from './fixture.ts'

export interface SqliteDriver {
  readonly driver: string
  readonly open: Open
}

/** By shape, because the types of Node 20 do not know the module. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqliteDatabase
}

async function nodeSqlite(): Promise<SqliteDriver> {
  const name = 'node:sqlite'
  const { DatabaseSync }: NodeSqlite = await import(name)
  return { driver: name, open: path => new DatabaseSync(path) }
}

const libsql: SqliteDriver = { driver: 'libsql', open: path => new Database(path) }

const hasOwnSqlite = Number.parseInt(process.versions.node, 10) >= 22

export const sqliteDrivers: readonly SqliteDriver[] = hasOwnSqlite ? [libsql, await nodeSqlite()] : [libsql]

/** SQLite through node:sqlite where Node has it, libsql or better-sqlite3 elsewhere. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type SqliteDatabase, sqliteMigrations, type SqliteStore, sqliteStore } from 'latchkey/stores/sqlite'
import { sqliteChecks } from '../doctor/sqlite/checks.ts'
import type { Context } from '../program/context.ts'
import { CliError, exits } from '../program/exit.ts'
import { loadDriver, memberOf } from './driver.ts'
import type { AppliedStep, OpenedStore } from './opened.ts'

export async function openSqlite(context: Context, url: string, create: boolean): Promise<OpenedStore> {
  const path = fileOf(url, context.cwd)
  if (!create && !existsSync(path)) {
    throw new CliError(
      exits.unreachable,
      'store-unavailable',
      `there is no file ${path}: check the path, or create it with latchkey migrate`,
    )
  }
  const Database = await databaseClass(context.cwd)
  const open = (file: string) => new Database(file)
  // The store makes the file when it is opened, which a dry run must not.
  let opened: SqliteStore | undefined
  const store = () => (opened ??= sqliteStore({ path, open }))
  return {
    kind: 'sqlite',
    address: path,
    get store() {
      return store()
    },
    tables: {
      steps: sqliteMigrations,
      applied: async () => (existsSync(path) ? appliedSteps(open, path) : []),
      migrate: options => store().migrate(options),
    },
    checks: sqliteChecks({ path, open, store }),
    close: async () => opened?.close(),
  }
}

/** `sqlite:./app.db`, `sqlite:///data/app.db`, `file:///data/app.db`. */
function fileOf(url: string, cwd: string): string {
  if (url.startsWith('file://')) return fileURLToPath(url)
  return resolve(cwd, url.replace(/^(?:sqlite|file):(?:\/\/(?=\/))?/, ''))
}

async function databaseClass(cwd: string): Promise<new (path: string) => SqliteDatabase> {
  // Absent before Node 22.13.
  const own = process.getBuiltinModule('node:sqlite') as { DatabaseSync?: unknown } | undefined
  const found = own?.DatabaseSync ?? memberOf(await loadDriver(cwd, ['libsql', 'better-sqlite3'], 'SQLite'), 'Database')
  // Both drivers have the shape that the store asks for, and it checks that.
  return found as new (path: string) => SqliteDatabase
}

function appliedSteps(open: (path: string) => SqliteDatabase, path: string): readonly AppliedStep[] {
  const database = open(path)
  try {
    const [table] = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'latchkey_migrations'`).all()
    if (table === undefined) return []
    const rows = database.prepare('SELECT version, name, applied_at_ms FROM latchkey_migrations ORDER BY version').all()
    return rows.map(row => {
      // The columns of the statement above.
      const { version, name, applied_at_ms } = row as Record<string, unknown>
      return { version: Number(version), name: String(name), appliedAtMs: Number(applied_at_ms) }
    })
  } finally {
    database.close()
  }
}

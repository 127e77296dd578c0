/** What is looked at in a SQLite file. */
import type { Store } from 'latchkey'
import { type SqliteDatabase, sqliteMigrations } from 'latchkey/stores/sqlite'
import { type Check, type Finding, ok, skip } from '../finding.ts'
import { fitCheck } from '../fit.ts'

export interface SqliteUnderCheck {
  readonly path: string
  readonly open: (path: string) => SqliteDatabase
  /** Opened when it is asked for. */
  readonly store: () => Store
}

export function sqliteChecks(file: SqliteUnderCheck): readonly Check[] {
  return [fitCheck(file.store), schemaCheck(file), journalCheck(file), integrityCheck(file)]
}

/** What is expected is made in memory, from the steps themselves. */
function schemaCheck({ path, open, store }: SqliteUnderCheck): Check {
  return {
    name: 'schema',
    async look() {
      const checked = await store().check?.()
      if (checked?.kind === 'not-migrated') return skip('compared when it is migrated')
      const expected = reading(open, ':memory:', database => {
        for (const { sql } of sqliteMigrations) database.exec(sql)
        return objectsOf(database)
      })
      const found = new Map(reading(open, path, objectsOf).map(object => [object.name, object]))
      const drift = expected.flatMap(object => driftOf(object, found.get(object.name)))
      return drift.length === 0 ? ok(`${expected.length} tables and indexes are as they were made`) : drift
    },
  }
}

interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly sql: string
}

function objectsOf(database: SqliteDatabase): readonly SchemaObject[] {
  const rows = database
    .prepare(
      `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name LIKE 'latchkey_%' ORDER BY name`,
    )
    .all()
  // The columns of the statement above.
  return rows as readonly SchemaObject[]
}

function driftOf({ type, name, sql }: SchemaObject, found: SchemaObject | undefined): readonly Finding[] {
  if (found === undefined) {
    return [{ verdict: 'FAIL', text: `the ${type} ${name} is missing`, cure: 'run the statement', sql: [`${sql};`] }]
  }
  if (found.sql === sql) return []
  const isIndex = type === 'index'
  return [
    {
      verdict: 'FAIL',
      text: `the ${type} ${name} was changed: it is ${found.sql}, and was made as ${sql}`,
      cure: isIndex ? 'run the statements' : 'undo the change',
      ...(isIndex ? { sql: [`DROP INDEX ${name};`, `${sql};`] } : {}),
    },
  ]
}

/** Readers and the writer of several processes stand in each other's way without it. */
function journalCheck({ path, open }: SqliteUnderCheck): Check {
  return {
    name: 'journal',
    async look() {
      const mode = reading(open, path, database => pragma(database, 'journal_mode'))
      if (mode === 'wal') return ok('write-ahead log')
      return [
        {
          verdict: 'warn',
          text: `the journal mode is ${mode}`,
          cure: 'the store sets it when it opens the file; run the statement',
          sql: ['PRAGMA journal_mode = wal;'],
        },
      ]
    },
  }
}

function integrityCheck({ path, open }: SqliteUnderCheck): Check {
  return {
    name: 'integrity',
    async look() {
      const answer = reading(open, path, database => pragma(database, 'quick_check(1)'))
      if (answer === 'ok') return ok('the pages of the file are sound')
      return [{ verdict: 'FAIL', text: `the file is damaged: ${answer}`, cure: 'restore it from a backup' }]
    },
  }
}

function pragma(database: SqliteDatabase, name: string): string {
  const [row] = database.prepare(`PRAGMA ${name}`).all()
  return String(Object.values((row ?? {}) as Record<string, unknown>)[0])
}

function reading<T>(open: SqliteUnderCheck['open'], path: string, read: (database: SqliteDatabase) => T): T {
  const database = open(path)
  try {
    return read(database)
  } finally {
    database.close()
  }
}

/** The tables. STRICT, so that a column holds what it says; text compares bytewise (BINARY is SQLite's default). */
import {
  type AppliedStep,
  latestOf,
  type MigrateOptions,
  type Migration,
  migrationsAfter,
  stepsFault,
  type StepsFault,
} from '../../shared/migrations.ts'
import type { Handle } from '../connection/handle.ts'
import { keyTables } from './0001-keys.ts'
import { stepTables } from './0002-steps.ts'
import { outboxTables } from './0003-outbox.ts'
import { reconciliationTables } from './0004-reconciliation.ts'
import { keyTable } from './0005-key-table.ts'
import { sharedFromColumn } from './0006-shared-from.ts'
import { scopeIndex } from './0007-scope-index.ts'
import { erasureTables } from './0008-erasure.ts'
import { auditRecordTables } from './0009-audit-records.ts'
import { limitBuckets } from './0010-limit-buckets.ts'
import { inboxTables } from './0011-inbox.ts'
import { referenceTable } from './0012-references.ts'
import { adminTables } from './0013-admin.ts'

/** Milliseconds since 1970 on the store's own clock, one instant per statement. Rounded: the product is a float. */
export const nowMsSql: string = `CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)`

/**
 * The SQL text of every step, for applications that run migrations with a tool of their own. Each runs in one transaction and
 * records itself. The file must be in WAL mode; the store sees to that when it opens it.
 */
export const sqliteMigrations: readonly Migration[] = [
  {
    version: 1,
    name: 'keys, outcomes, evidence, audit',
    sql: keyTables,
  },
  {
    version: 2,
    name: 'inputs and steps of phased work',
    sql: stepTables,
  },
  {
    version: 3,
    name: 'outbox',
    sql: `${outboxTables}
INSERT INTO latchkey_migrations VALUES (3, 'outbox', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`,
  },
  {
    version: 4,
    name: 'reconciliation',
    sql: `${reconciliationTables}
INSERT INTO latchkey_migrations VALUES (4, 'reconciliation', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`,
  },
  {
    version: 5,
    name: 'keys in order of arrival, with small outcomes',
    sql: `${keyTable}
INSERT INTO latchkey_migrations VALUES (5, 'keys in order of arrival, with small outcomes', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`,
  },
  {
    version: 6,
    name: 'who may share the file',
    sql: sharedFromColumn,
  },
  {
    version: 7,
    name: 'rows of a scope',
    sql: scopeIndex,
  },
  {
    version: 8,
    name: 'erasing a tenant',
    sql: erasureTables,
  },
  {
    version: 9,
    name: 'a trail that outlives the rows',
    sql: auditRecordTables,
  },
  {
    version: 10,
    name: 'limits over processes',
    sql: limitBuckets,
  },
  {
    version: 11,
    name: 'messages that consumers have parked',
    sql: inboxTables,
  },
  {
    version: 12,
    name: 'names under which rows are found',
    sql: referenceTable,
  },
  {
    version: 13,
    name: 'what operators need',
    sql: adminTables,
  },
]

/** What is wrong with the tables of a file; undefined: nothing. */
export type SchemaFault = StepsFault | { readonly kind: 'absent' }

export function schemaFault(handle: Handle): SchemaFault | undefined {
  const names = handle.query(`SELECT name FROM sqlite_schema WHERE name IN ('latchkey_migrations', 'latchkey_keys')`)
  if (names.length === 0) return { kind: 'absent' }
  return stepsFault(sqliteMigrations, appliedSteps(handle))
}

const stepColumns = ['version', 'name', 'applied_at_ms']

/** Empty also where Latchkey did not make the table. */
function appliedSteps(handle: Handle): readonly AppliedStep[] {
  const columns = handle
    .query(`SELECT name FROM pragma_table_info('latchkey_migrations')`)
    .map(({ name }) => String(name))
  if (!stepColumns.every(name => columns.includes(name))) return []
  // Files from before step 6 have no such column.
  const sharedFrom = columns.includes('shared_from') ? 'shared_from' : 'NULL'
  const rows = handle.query(
    `SELECT version, name, ${sharedFrom} AS shared_from FROM latchkey_migrations ORDER BY version`,
  )
  return rows.map(({ version, name, shared_from }) => ({
    version: Number(version),
    name: String(name),
    sharedFrom: shared_from === null ? undefined : Number(shared_from),
  }))
}

/** Inside one write transaction: of several processes at once the first does it, the others then find it done. */
export function applyMigrations(handle: Handle, options?: MigrateOptions): void {
  const missing = migrationsAfter(sqliteMigrations, latestOf(appliedSteps(handle)), options)
  for (const migration of missing) handle.exec(migration.sql)
}

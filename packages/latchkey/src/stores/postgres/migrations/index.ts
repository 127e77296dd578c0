/**
 * The tables, step by step. The text of a step never changes once it was released, because databases have it: `index.test.ts` holds
 * the digest of each.
 */
import type { Migration } from '../../shared/migrations.ts'
import { dialect, type Dialect } from '../sql/names.ts'
import { keyTables } from './steps/0001-keys.ts'
import { stepTables } from './steps/0002-steps.ts'
import { outboxTables } from './steps/0003-outbox.ts'
import { reconciliationTables } from './steps/0004-reconciliation.ts'
import { outcomeColumn } from './steps/0005-outcome-column.ts'
import { functions6 } from './steps/functions/0006-functions.ts'
import { leanTables } from './steps/0006-lean-tables.ts'
import { functions7 } from './steps/functions/0007-functions.ts'
import { functions8 } from './steps/functions/0008-functions.ts'
import { functions9 } from './steps/functions/0009-functions.ts'
import { narrowRows } from './steps/0009-narrow-rows.ts'
import { scopeIndex } from './steps/0010-scope-index.ts'
import { erasureTables } from './steps/0011-erasure.ts'
import { auditRecordTables } from './steps/0012-audit-records.ts'
import { limitBuckets } from './steps/0013-limit-buckets.ts'
import { inboxTables } from './steps/0014-inbox.ts'
import { referenceTable } from './steps/0015-references.ts'
import { adminTables } from './steps/0016-admin.ts'

/**
 * The statements that create and change Latchkey's tables, for applications that run them with their own tool. Run each once, in order and
 * in a transaction of its own, after `set local search_path = pg_catalog, pg_temp`, so that no name in them can refer to an object that
 * another role has put into a schema of your path; `store.migrate()` does the same.
 */
export function postgresMigrations(schema = 'latchkey'): readonly Migration[] {
  return migrationsOf(dialect(schema))
}

/** The functions read the dialect's clock, as the statements do. */
export function migrationsOf(sql: Dialect): readonly Migration[] {
  const { schema } = sql
  return [
    recorded(schema, { version: 1, name: 'keys', sql: keyTables(schema) }),
    recorded(schema, { version: 2, name: 'steps', sql: stepTables(schema) }),
    recorded(schema, { version: 3, name: 'outbox', sql: outboxTables(schema) }),
    recorded(schema, { version: 4, name: 'reconciliation', sql: reconciliationTables(schema) }),
    recorded(schema, { version: 5, name: 'batches', sql: outcomeColumn(schema) }),
    recorded(schema, { version: 6, name: 'lean', sql: leanTables(schema) + functions6(schema) }),
    recorded(schema, { version: 7, name: 'outbox-batches', sql: functions7(schema) }),
    sharedFrom(7, schema, {
      version: 8,
      name: 'functions-by-version',
      sql: sharedFromColumn(schema) + functions8(schema),
    }),
    sharedFrom(9, schema, { version: 9, name: 'narrow-rows', sql: narrowRows(schema) + functions9(sql) }),
    sharedFrom(9, schema, { version: 10, name: 'scope-index', sql: scopeIndex(schema) }),
    sharedFrom(9, schema, { version: 11, name: 'erasure', sql: erasureTables(schema) }),
    sharedFrom(9, schema, { version: 12, name: 'audit-records', sql: auditRecordTables(sql) }),
    sharedFrom(9, schema, { version: 13, name: 'limit-buckets', sql: limitBuckets(schema) }),
    sharedFrom(9, schema, { version: 14, name: 'inbox', sql: inboxTables(schema) }),
    sharedFrom(9, schema, { version: 15, name: 'references', sql: referenceTable(schema) }),
    sharedFrom(9, schema, { version: 16, name: 'admin', sql: adminTables(schema) }),
  ]
}

/** A step also records that it was applied. */
function recorded(schema: string, { version, name, sql }: Migration): Migration {
  return {
    version,
    name,
    sql: `${sql}insert into ${schema}.migrations (version, name) values (${version}, '${name}');\n`,
  }
}

/** From step 8 on, a step also records which processes may share the tables after it: those that know at least the step `from`. */
function sharedFrom(from: number, schema: string, { version, name, sql }: Migration): Migration {
  return {
    version,
    name,
    sql: `${sql}insert into ${schema}.migrations (version, name, shared_from) values (${version}, '${name}', ${from});\n`,
  }
}

function sharedFromColumn(schema: string): string {
  return `alter table ${schema}.migrations add column shared_from integer;\n\n`
}

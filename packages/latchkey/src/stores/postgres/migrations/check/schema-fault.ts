/** What is wrong with the schema, each fault with its remedy. */
import type { StoreFault } from '../../../../ports/store.ts'
import { stepsFault, type StepsFault } from '../../../shared/migrations.ts'
import type { Dialect } from '../../sql/names.ts'
import { migrationsOf } from '../index.ts'
import { type Right, type SchemaState, stepColumns } from './read-schema.ts'

/** The oldest release that the tests run on. */
const serverVersionMin = 150_000

/**
 * What requests need. Workers and operators need more, and may have a role of their own: their own statements report what it lacks.
 */
const neededRights: Readonly<Record<string, readonly Right[]>> = {
  keys: ['select', 'insert', 'update'],
  outcomes: ['select', 'insert', 'update', 'delete'],
  evidence: ['select', 'insert'],
  due: ['select', 'insert', 'update', 'delete'],
  inputs: ['select', 'insert', 'update', 'delete'],
  steps: ['select', 'insert', 'update', 'delete'],
  waiting: ['select', 'insert', 'update', 'delete'],
  outbox: ['insert'],
}

function rightsNeeded({ recordsLines }: Dialect): Readonly<Record<string, readonly Right[]>> {
  return recordsLines ? { ...neededRights, audit_records: ['insert'] } : neededRights
}

/** Undefined: the store can be used by this role, as it is. */
export function schemaFault(found: SchemaState, sql: Dialect): StoreFault | undefined {
  return serverFault(found) ?? tablesFault(found, sql) ?? writeFault(found) ?? rightsFault(found, sql)
}

/** What no migration could repair; undefined: missing steps may be applied. */
export function faultBeforeMigration(found: SchemaState, sql: Dialect): StoreFault | undefined {
  const tables = tablesFault(found, sql)
  if (tables === undefined) return serverFault(found)
  if (tables.kind !== 'not-migrated') return tables
  return serverFault(found) ?? writeFault(found) ?? createFault(found, sql)
}

function serverFault({ serverVersion }: SchemaState): StoreFault | undefined {
  if (serverVersion >= serverVersionMin) return undefined
  const have = Math.floor(serverVersion / 10_000)
  return { kind: 'too-old', message: `PostgreSQL 15 or later is required (got ${have}): upgrade the server` }
}

/** Whose tables they are, and of which release. */
function tablesFault(found: SchemaState, sql: Dialect): StoreFault | undefined {
  const { schema, tables, columns, role } = found
  if (schema === null) return notMigrated(sql, 'there is no such schema')
  if (tables['migrations'] === undefined) {
    const strange = Object.keys(neededRights).find(name => tables[name] !== undefined)
    return strange === undefined
      ? notMigrated(sql, 'it has none of them')
      : foreign(sql, `it has a table ${strange}, but no table migrations of Latchkey`)
  }
  if (Object.entries(stepColumns).some(([name, type]) => columns[name] !== type)) {
    return foreign(sql, `its table migrations has the columns ${Object.keys(columns).join(', ')}`)
  }
  if (!schema.usage) return lacking(role, `use schema ${sql.schema}`, `grant usage on schema ${sql.schema}`)
  if (!tables['migrations'].includes('select')) {
    return lacking(role, `select from ${sql.migrations}`, `grant select on ${sql.migrations}`)
  }
  const fault = stepsFault(migrationsOf(sql), found.steps.map(known))
  return fault === undefined ? missingFunction(found, sql) : stepsMessage(fault, sql)
}

/** JSON has no undefined. */
function known(step: SchemaState['steps'][number]): SchemaState['steps'][number] {
  return { ...step, sharedFrom: step.sharedFrom ?? undefined }
}

function stepsMessage(fault: StepsFault, sql: Dialect): StoreFault {
  if (fault.kind === 'older') return notMigrated(sql, `its last step is ${fault.version}`)
  if (fault.kind === 'foreign') {
    const { step } = fault
    return foreign(
      sql,
      step ? `its table migrations names step ${step.version} "${step.name}"` : 'its table migrations is empty',
    )
  }
  const { version, name } = fault.step
  const message = `a newer release of Latchkey has migrated schema ${sql.schema} (step ${version}, "${name}"), and processes of this release cannot share it: run the newer release here as well, or give this one another schema`
  return { kind: 'newer', message }
}

function missingFunction({ functions }: SchemaState, sql: Dialect): StoreFault | undefined {
  const missing = Object.values(sql.functions).find(name => functions[bare(name)] === undefined)
  if (missing === undefined) return undefined
  const message = `the function ${missing} is missing from the database, although the step that creates it was applied: restore it from a backup, or run its statement of postgresMigrations() again`
  return { kind: 'not-migrated', message }
}

function writeFault({ standby, readOnly, database }: SchemaState): StoreFault | undefined {
  if (standby) {
    const message =
      'the server is a standby, which cannot be written: connect to the primary (target_session_attrs=read-write)'
    return { kind: 'read-only', message }
  }
  if (!readOnly) return undefined
  const message = `every transaction is read-only here (default_transaction_read_only): change it for the role, or with alter database "${database}" set default_transaction_read_only = off`
  return { kind: 'read-only', message }
}

function rightsFault({ role, tables, functions }: SchemaState, sql: Dialect): StoreFault | undefined {
  for (const [table, needed] of Object.entries(rightsNeeded(sql))) {
    const missing = needed.filter(right => tables[table]?.includes(right) !== true)
    if (missing.length === 0) continue
    const named = `${sql.schema}.${table}`
    return lacking(role, `${missing.join(', ')} on ${named}`, `grant ${missing.join(', ')} on ${named}`)
  }
  const closed = Object.values(sql.functions).find(name => functions[bare(name)] === false)
  return closed === undefined ? undefined : lacking(role, `call ${closed}`, `grant execute on function ${closed}`)
}

function createFault({ role, schema, mayCreateSchema, database }: SchemaState, sql: Dialect): StoreFault | undefined {
  if (schema === null) {
    if (mayCreateSchema) return undefined
    return lacking(role, `create schema ${sql.schema}`, `grant create on database "${database}"`)
  }
  if (schema.create) return undefined
  return lacking(role, `create tables in schema ${sql.schema}`, `grant usage, create on schema ${sql.schema}`)
}

function notMigrated({ schema }: Dialect, why: string): StoreFault {
  const cure = 'call `await store.migrate()` at start, or run the statements of postgresMigrations() with your own tool'
  return {
    kind: 'not-migrated',
    message: `the tables of Latchkey are missing or too old in schema ${schema} (${why}): ${cure}`,
  }
}

function foreign({ schema }: Dialect, why: string): StoreFault {
  const message = `schema ${schema} belongs to something else (${why}): give Latchkey a schema of its own, postgresStore({ pool, schema })`
  return { kind: 'foreign', message }
}

function lacking(role: string, what: string, grant: string): StoreFault {
  return { kind: 'rights', message: `the role "${role}" may not ${what}: run ${grant} to "${role}"` }
}

function bare(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

/** The names that every statement of this store is made of. */
import { misconfigured } from '../../../ports/errors.ts'
import { functionNames, type FunctionNames, recordingFunctionNames } from './functions.ts'

export interface Dialect {
  /** Quoted. */
  readonly schema: string
  readonly keys: string
  readonly outcomes: string
  readonly evidence: string
  readonly due: string
  readonly audit: string
  readonly auditRecords: string
  readonly auditSink: string
  readonly erasures: string
  readonly buckets: string
  readonly inboxParked: string
  readonly inboxAudit: string
  readonly references: string
  readonly inputs: string
  readonly steps: string
  readonly waiting: string
  readonly received: string
  readonly ledgers: string
  readonly migrations: string
  readonly functions: FunctionNames
  /** The store's clock. */
  readonly now: string
  /** Whether the end of an execution also writes a line of the trail. Where it does not, no statement is different by a byte. */
  readonly recordsLines: boolean
}

/**
 * The time at which the expression is evaluated. now() would be the start of the transaction, which may have been open for long, and
 * the application's clock decides nothing.
 */
export const serverClock = 'pg_catalog.clock_timestamp()'

export function dialect(schema: string, now: string = serverClock): Dialect {
  // 63 bytes is where PostgreSQL cuts a name, silently; two long names could become one.
  if (!/^[A-Za-z_][A-Za-z0-9_-]{0,62}$/.test(schema)) {
    throw misconfigured(
      `invalid schema name ${JSON.stringify(schema)}: use 1 to 63 letters, digits, "_" or "-", not starting with a digit`,
    )
  }
  const quoted = `"${schema}"`
  return {
    schema: quoted,
    keys: `${quoted}.keys`,
    outcomes: `${quoted}.outcomes`,
    evidence: `${quoted}.evidence`,
    due: `${quoted}.due`,
    audit: `${quoted}.audit`,
    auditRecords: `${quoted}.audit_records`,
    auditSink: `${quoted}.audit_sink`,
    erasures: `${quoted}.erasures`,
    buckets: `${quoted}.limit_buckets`,
    inboxParked: `${quoted}.inbox_parked`,
    inboxAudit: `${quoted}.inbox_audit`,
    references: `${quoted}.key_references`,
    inputs: `${quoted}.inputs`,
    steps: `${quoted}.steps`,
    waiting: `${quoted}.waiting`,
    received: `${quoted}.received`,
    ledgers: `${quoted}.ledger_runs`,
    migrations: `${quoted}.migrations`,
    functions: functionNames(quoted),
    now,
    recordsLines: false,
  }
}

export function recordingDialect(sql: Dialect): Dialect {
  return { ...sql, functions: { ...sql.functions, ...recordingFunctionNames(sql.schema) }, recordsLines: true }
}

export interface AdminNames {
  readonly details: string
  readonly notes: string
  readonly proposals: string
  readonly bulk: string
  readonly bulkRows: string
  readonly workers: string
  readonly rates: string
}

export function adminNames({ schema }: Dialect): AdminNames {
  return {
    details: `${schema}.audit_details`,
    notes: `${schema}.notes`,
    proposals: `${schema}.proposals`,
    bulk: `${schema}.bulk`,
    bulkRows: `${schema}.bulk_rows`,
    workers: `${schema}.workers`,
    rates: `${schema}.rates`,
  }
}

export interface OutboxNames {
  readonly outbox: string
  readonly lanes: string
  readonly parked: string
  readonly delivered: string
  readonly audit: string
}

export function outboxNames({ schema }: Dialect): OutboxNames {
  return {
    outbox: `${schema}.outbox`,
    lanes: `${schema}.outbox_lanes`,
    parked: `${schema}.outbox_parked`,
    delivered: `${schema}.outbox_delivered`,
    audit: `${schema}.outbox_audit`,
  }
}

/** Brings the tables to this version: one transaction, so that a failure leaves what was there. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { StoreCheck } from '../../../ports/store.ts'
import { latestOf, type MigrateOptions, migrationsAfter } from '../../shared/migrations.ts'
import { isDenied, storeError } from '../connection/errors.ts'
import { beginReadCommitted, openTransaction } from '../connection/transaction.ts'
import type { PgClient, PgPool, PgQueryable } from '../driver.ts'
import { ownPath } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { migrationsOf } from './index.ts'
import { readSchema } from './check/read-schema.ts'
import { faultBeforeMigration, schemaFault } from './check/schema-fault.ts'

export interface Migrating extends MigrateOptions {
  readonly pool: PgPool
  readonly sql: Dialect
  readonly schemaName: string
}

/**
 * Safe from any number of processes at once: the one that has the lock works, the others wait and then find nothing to do. The
 * lock is the transaction's, so that PgBouncer in transaction mode may stand in between.
 */
export async function migrate(migrating: Migrating): Promise<void> {
  const { pool, sql } = migrating
  const transaction = await openTransaction({ pool, schema: sql.schema }, beginReadCommitted)
  try {
    await applyMissing(transaction.client, migrating)
  } catch (error) {
    await transaction.rollback()
    throw storeError(error, sql.schema)
  }
  const end = await transaction.commit()
  if (end.kind === 'committed') return
  throw storeError('cause' in end ? end.cause : new Error('the migration was rolled back'), sql.schema)
}

async function applyMissing(client: PgClient, { sql, schemaName, ...options }: Migrating): Promise<void> {
  // So that no name in the steps can refer to an object that another role has put into a schema of the caller's path.
  await client.query(`set local ${ownPath}`)
  // The steps drop what may not be there. postgres.js writes every notice about that to the console.
  await client.query('set local client_min_messages = warning')
  await client.query('select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0::bigint))', [
    `latchkey migrations of ${schemaName}`,
  ])
  // Its own statement after the lock: it sees what the process before us committed.
  const found = await readSchema(client, sql)
  const fault = faultBeforeMigration(found, sql)
  if (fault !== undefined) throw new LatchkeyError(`store-${fault.kind}`, fault.message)
  for (const { version, sql: text } of migrationsAfter(migrationsOf(sql), latestOf(found.steps), options)) {
    await client.query(text).catch((error: unknown) => {
      throw isDenied(error) ? notTheOwner(found.role, version, error) : error
    })
  }
}

function notTheOwner(role: string, version: number, cause: unknown): LatchkeyError {
  const message = `the role "${role}" may not apply step ${version} (${String(cause)}): run migrate() as the role that owns Latchkey's tables`
  return new LatchkeyError('store-rights', message, { cause })
}

/** Once the schema was found fit, a check costs nothing. */
export function checkCall(queryable: PgQueryable, sql: Dialect): () => Promise<StoreCheck> {
  let isFit = false
  return async () => {
    if (isFit) return { kind: 'fit' }
    try {
      const fault = schemaFault(await readSchema(queryable, sql), sql)
      isFit = fault === undefined
      return fault ?? { kind: 'fit' }
    } catch (error) {
      throw storeError(error, sql.schema)
    }
  }
}

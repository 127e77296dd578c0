/** Brings the tables to this version: one transaction, so that a failure leaves what was there. */
import { migrationsAfter } from '../../sql/migrations.ts'
import type { Dialect } from './dialect.ts'
import type { PgClient, PgPool } from './driver.ts'
import { migrationsOf } from './migrations.ts'
import { storeError } from './sqlstate.ts'
import { beginReadCommitted, openTransaction } from './transaction.ts'

export interface MigrateOptions {
  readonly pool: PgPool
  readonly sql: Dialect
  readonly schemaName: string
}

/**
 * Safe from any number of processes at once: whoever has the lock works, the others wait and then find nothing to do. The
 * lock is the transaction's, so that PgBouncer in transaction mode may stand in between.
 */
export async function migrate({ pool, sql, schemaName }: MigrateOptions): Promise<void> {
  const transaction = await openTransaction(pool, sql.schema, beginReadCommitted)
  try {
    await applyMissing(transaction.client, sql, schemaName)
  } catch (error) {
    await transaction.rollback()
    throw storeError(error, sql.schema)
  }
  const end = await transaction.commit()
  if (end.kind === 'committed') return
  throw storeError('cause' in end ? end.cause : new Error('the migration was rolled back'), sql.schema)
}

async function applyMissing(client: PgClient, sql: Dialect, schemaName: string): Promise<void> {
  await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`latchkey migrations of ${schemaName}`])
  for (const migration of migrationsAfter(migrationsOf(sql), await appliedVersion(client, sql))) {
    await client.query(migration.sql)
  }
}

async function appliedVersion(client: PgClient, sql: Dialect): Promise<number> {
  // Its own statement after the lock: it sees what the process before us committed.
  const { rows } = await client.query('select to_regclass($1) is not null as present', [sql.migrations])
  if (!(rows[0] as { present: boolean }).present) return 0
  const versions = await client.query(`select coalesce(max(version), 0)::integer as version from ${sql.migrations}`)
  return Number((versions.rows[0] as { version: number }).version)
}

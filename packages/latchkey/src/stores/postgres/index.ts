import type { ClientOf, PgPool } from './driver.ts'
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from './store.ts'

export type { PgClient, PgPool, PgQueryable, PgResult } from './driver.ts'
export type { BatchingOptions } from './batching.ts'
export type { Migration } from '../../sql/migrations.ts'
export type { PostgresStore, PostgresStoreOptions } from './store.ts'
export { postgresMigrations } from './migrations.ts'

/**
 * Keys in PostgreSQL 14 or later, the reference store. The `tx` of an atomic operation has the client type of the pool.
 */
export function postgresStore<Pool extends PgPool>({
  pool,
  schema = 'latchkey',
  batching = true,
}: PostgresStoreOptions<Pool>): PostgresStore<ClientOf<Pool>> {
  return openPostgresStore({ pool, schema, batching })
}

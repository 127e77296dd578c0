import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { count, either, flag, having, nested, text, waitedMs } from '../../ports/option-kinds.ts'
import type { BatchingOptions } from './batch/batching.ts'
import type { ClientOf, PgPool } from './driver.ts'
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from './store.ts'

export type { PgClient, PgPool, PgQueryable, PgResult } from './driver.ts'
export type { BatchingOptions } from './batch/batching.ts'
export type { Migration } from '../shared/migrations.ts'
export type { PostgresStore, PostgresStoreOptions } from './store.ts'
export { postgresMigrations } from './migrations/index.ts'

const batchingChecks: ChecksOf<BatchingOptions> = {
  sizeMax: count,
  openMax: count,
  timeoutMs: waitedMs,
  queueMsMax: waitedMs,
}

const postgresChecks: ChecksOf<PostgresStoreOptions> = {
  pool: having('a pool of pg', 'connect', 'query'),
  schema: text,
  batching: either(flag, nested(batchingChecks)),
}

/**
 * Keys in PostgreSQL 15 or later, the reference store. The `tx` of an atomic operation has the client type of the pool.
 */
export function postgresStore<Pool extends PgPool>(options: PostgresStoreOptions<Pool>): PostgresStore<ClientOf<Pool>> {
  checkOptions('postgresStore', options, postgresChecks)
  if (options.pool === undefined) throw misconfigured('postgresStore needs a pool: new Pool({ … }) of pg')
  return openPostgresStore(options)
}

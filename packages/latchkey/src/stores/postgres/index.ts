import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { anything, count, either, flag, nested, text, waitedMs } from '../../ports/option-kinds.ts'
import type { BatchingOptions } from './batch/batched-calls.ts'
import { checkDriver } from './check-driver.ts'
import type { ClientOf, PgPool } from './driver.ts'
import type { PostgresJs, TransactionOf } from './postgres-js/driver.ts'
import { postgresJsPool } from './postgres-js/pool.ts'
import {
  openPostgresStore,
  type PostgresJsStoreOptions,
  type PostgresStore,
  type PostgresStoreOptions,
  type PostgresTables,
} from './store.ts'

export type { PgClient, PgPool, PgQueryable, PgResult } from './driver.ts'
export type { BatchingOptions } from './batch/batched-calls.ts'
export type { MigrateOptions, Migration } from '../shared/migrations.ts'
export type { PostgresJs, TransactionOf } from './postgres-js/driver.ts'
export type { PostgresJsStoreOptions, PostgresStore, PostgresStoreOptions, PostgresTables } from './store.ts'
export { postgresMigrations } from './migrations/index.ts'

const batchingChecks: ChecksOf<BatchingOptions> = {
  sizeMax: count,
  openMax: count,
  timeoutMs: waitedMs,
  queueMsMax: waitedMs,
}

const tableChecks: ChecksOf<PostgresTables> = {
  schema: text,
  batching: either(flag, nested(batchingChecks)),
}

/**
 * Keys in PostgreSQL 15 or later, the reference store. The `tx` of an atomic operation has the client type of the pool. With
 * postgres.js it is the `sql` of the transaction.
 */
export function postgresStore<Pool extends PgPool>(options: PostgresStoreOptions<Pool>): PostgresStore<ClientOf<Pool>>
export function postgresStore<Sql extends PostgresJs>(
  options: PostgresJsStoreOptions<Sql>,
): PostgresStore<TransactionOf<Sql>>
export function postgresStore(options: PostgresStoreOptions | PostgresJsStoreOptions): PostgresStore<unknown> {
  const { pool, sql } = checkDriver(options)
  checkOptions('postgresStore', options, { ...tableChecks, pool: anything, sql: anything })
  const { schema, batching } = options
  return openPostgresStore({
    pool: pool ?? postgresJsPool(sql),
    ...(schema === undefined ? {} : { schema }),
    ...(batching === undefined ? {} : { batching }),
  })
}

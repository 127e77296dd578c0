/** The store on PostgreSQL, assembled. */
import type { Phases } from '../../ports/steps.ts'
import type { FullStore, StoreCheck, Transactor } from '../../ports/store.ts'
import { postgresAdmin } from './admin/index.ts'
import { postgresTransactor } from './atomic/transactor.ts'
import { postgresAuditRecords } from './audit/index.ts'
import { batchedCalls, type BatchingOptions, queueMsOf } from './batch/batched-calls.ts'
import { ignoreErrorsOfPool } from './connection/ignore-errors.ts'
import { type Sessions, sessions } from './connection/prepared.ts'
import { autocommit } from './connection/statement.ts'
import { everyFaculty, everyKind } from '../shared/faculties.ts'
import type { MigrateOptions } from '../shared/migrations.ts'
import type { Observed } from '../shared/observed.ts'
import type { ClientOf, PgPool } from './driver.ts'
import type { PostgresJs } from './postgres-js/driver.ts'
import { eraseMarked, postgresErasure } from './erasure/index.ts'
import { postgresInbox } from './inbox/index.ts'
import { claimCall } from './keys/claim.ts'
import { completeCall } from './keys/complete.ts'
import { enqueueCall } from './keys/enqueue.ts'
import { failCalls } from './keys/fail.ts'
import { heartbeatCall } from './keys/heartbeat.ts'
import { operatorCalls } from './keys/operator.ts'
import { readCall } from './keys/read.ts'
import { reapCall } from './keys/reap.ts'
import { releaseCalls } from './keys/release.ts'
import { resumableCall } from './keys/resumable.ts'
import { sweepCall } from './keys/sweep.ts'
import { checkCall, migrate } from './migrations/migrate.ts'
import { postgresOutbox } from './outbox/index.ts'
import { postgresReconciliation } from './reconcile/index.ts'
import { postgresQuotas } from './quotas/index.ts'
import { postgresLedgers } from './reconcile/ledgers.ts'
import { type Dialect, dialect, recordingDialect } from './sql/names.ts'
import { postgresReferences } from './references/index.ts'
import { postgresPhases } from './steps/phases.ts'
import { postgresSteps } from './steps/steps.ts'
import { postgresValues } from './values/index.ts'

export interface PostgresStoreOptions<Pool extends PgPool = PgPool> extends PostgresTables {
  /**
   * A pool of `pg`, shared with the application or Latchkey's own. Guarded operations need at least two connections: one
   * cannot hold a handler's query and its heartbeat. The store listens to the `error` events of the pool and of its
   * connections, so that none of them ends the process; listen to the pool's yourself to log connections that break while
   * they are idle. PgBouncer in transaction mode may stand in between.
   */
  readonly pool: Pool
}

export interface PostgresJsStoreOptions<Sql extends PostgresJs = PostgresJs> extends PostgresTables {
  /**
   * What `postgres(…)` of postgres.js returns, shared with the application or Latchkey's own. Batches are sent through the driver, so
   * a pool of `pg` carries more under load. Behind PgBouncer in transaction mode, create it with `prepare: false`.
   */
  readonly sql: Sql
}

export interface PostgresTables {
  /** The schema of Latchkey's tables. Default: `latchkey`. Change it when several applications share one database. */
  readonly schema?: string
  /**
   * Group commit: concurrent claims, completions, heartbeats and replays of this process share one statement, one commit and
   * its flush to disk. Default: on. A call without company is sent by itself, so switching it off gains nothing, except
   * to observe what a single statement does.
   */
  readonly batching?: boolean | BatchingOptions
}

export interface PostgresStore<Client> extends FullStore<Client> {
  /**
   * Creates or updates the tables. Call it at every start: it is quick when there is nothing to do, and safe from many processes at once. Refuses, and changes
   * nothing, in a schema that belongs to something else or that a newer release has changed beyond this one, and without the rights for it.
   */
  migrate(options?: MigrateOptions): Promise<void>
  check(): Promise<StoreCheck>
}

export function openPostgresStore<Pool extends PgPool>({
  pool,
  schema = 'latchkey',
  batching = true,
  clock,
}: PostgresStoreOptions<Pool> & { readonly clock?: string }): PostgresStore<ClientOf<Pool>> {
  const sql = dialect(schema, clock)
  ignoreErrorsOfPool(pool)
  return assembled({
    pool,
    schemaName: schema,
    batching,
    tables: sql,
    sql,
    sessions: sessions(),
    observed: { observer: undefined },
  })
}

interface StoreParts<Pool> {
  readonly pool: Pool
  readonly schemaName: string
  readonly batching: boolean | BatchingOptions
  /** What the migrations are written in. */
  readonly tables: Dialect
  /** What the statements are written in: with or without lines of the trail. */
  readonly sql: Dialect
  readonly sessions: Sessions
  readonly observed: Observed
}

function assembled<Pool extends PgPool>(parts: StoreParts<Pool>): PostgresStore<ClientOf<Pool>> {
  const { pool, schemaName, batching, tables, sql, sessions: known, observed } = parts
  const run = autocommit(pool, sql.schema)
  const single = {
    ...claimCall(sql, run),
    ...enqueueCall(sql, run),
    ...readCall(sql, run),
    ...heartbeatCall(sql, run),
    ...completeCall(sql, run),
  }
  const batched =
    batching === false
      ? {}
      : batchedCalls({ sql, pool, sessions: known, options: batching === true ? {} : batching, single, observed })
  const calls = { ...single, ...batched }
  const erasure = postgresErasure(sql, run)
  let recording: PostgresStore<ClientOf<Pool>> | undefined
  const store: PostgresStore<ClientOf<Pool>> = {
    name: 'postgres',
    traits: {
      kinds: everyKind,
      transactional: true,
      durable: true,
      clock: 'store',
      processes: 'many',
      fence: 'dense',
      faculties: everyFaculty,
      connections: pool.options?.max,
      queueMsMax: queueMsOf(batching),
    },
    observe: observer => void (observed.observer = observer),
    // The transactor's clients come from this pool's `connect`, so they are of the pool's own client type.
    transactor: postgresTransactor({
      pool,
      sql,
      schemaName,
      sessions: known,
      read: calls.read,
      observed,
    }) as Transactor<unknown> as Transactor<ClientOf<Pool>>,
    steps: postgresSteps(sql, run),
    phases: postgresPhases(sql) as Phases<ClientOf<Pool>>,
    outbox: postgresOutbox<ClientOf<Pool>>(sql, run),
    reconciliation: postgresReconciliation(sql, run),
    ledgers: postgresLedgers(sql, run),
    values: postgresValues(sql, run),
    erasure,
    auditRecords: postgresAuditRecords(
      sql,
      run,
      () => (recording ??= sql.recordsLines ? store : assembled({ ...parts, sql: recordingDialect(sql) })),
    ),
    quotas: postgresQuotas(sql, run),
    inbox: postgresInbox(sql, run),
    references: postgresReferences<ClientOf<Pool>>(sql, run),
    admin: postgresAdmin({ sql, run, pool }),
    ...calls,
    ...failCalls(sql, run),
    ...releaseCalls(sql, run),
    ...sweepCall(sql, run),
    ...reapCall(sql, run, eraseMarked(sql, run, erasure)),
    ...resumableCall(sql, run),
    ...operatorCalls(sql, run),
    check: checkCall(pool, sql),
    migrate: (options = {}) => migrate({ ...options, pool, sql: tables, schemaName }),
  }
  return store
}

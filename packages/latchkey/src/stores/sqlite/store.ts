/** The store on SQLite, assembled. */
import { type Clock, systemClock } from '../../ports/clock.ts'
import type { ClaimResult, EnqueueResult, FullStore, StoreCheck, StoreTraits } from '../../ports/store.ts'
import { sqliteAdmin } from './admin/index.ts'
import { sqliteTransactor } from './atomic/transactor.ts'
import { sqliteAuditRecords } from './audit/index.ts'
import { recordingDatabase, recordingHandle } from './audit/lines.ts'
import { everyFaculty, everyKind } from '../shared/faculties.ts'
import type { MigrateOptions } from '../shared/migrations.ts'
import type { Observed } from '../shared/observed.ts'
import { type Database, openDatabase } from './connection/database.ts'
import { openTransactions, type OpenTransactions } from './atomic/open-transactions.ts'
import type { SqliteTx } from './atomic/transaction.ts'
import type { SqliteDatabase } from './driver.ts'
import { eraseMarked, sqliteErasure } from './erasure/index.ts'
import { sqliteInbox } from './inbox/index.ts'
import { claim, notGranted } from './keys/claim.ts'
import { completeMany } from './keys/complete.ts'
import { enqueue, notQueued } from './keys/enqueue.ts'
import { fail, park } from './keys/fail.ts'
import { heartbeat } from './keys/heartbeat.ts'
import { forget, inspect, list, unpark } from './keys/operator.ts'
import { reap } from './keys/reap.ts'
import { release, releaseMany } from './keys/release.ts'
import { resumable } from './keys/resumable.ts'
import { sweep } from './keys/sweep.ts'
import { sqliteOutbox } from './outbox/index.ts'
import { sqliteQuotas } from './quotas/index.ts'
import { sqliteLedgers, sqliteReconciliation } from './reconcile/index.ts'
import { settle } from './reconcile/settle.ts'
import { sqliteReferences } from './references/index.ts'
import { sqlitePhases } from './steps/phases.ts'
import { sqliteSteps } from './steps/steps.ts'
import { sqliteValues } from './values/index.ts'

export interface SqliteStoreOptions {
  /**
   * The database file; it is created where it does not exist, its directory is not. `:memory:` is refused. Must be on a
   * local disk: SQLite's locks do not work over a network.
   */
  readonly path: string
  /**
   * Opens one handle: `path => new DatabaseSync(path)` (node:sqlite, from Node 22), `path => new Database(path)` (libsql,
   * better-sqlite3). Called twice, because Latchkey never writes on a handle of the application. Use the driver that the
   * application itself uses for this file: two SQLite libraries in one process undo each other's file locks.
   */
  readonly open: (path: string) => SqliteDatabase
  /**
   * How long a transaction may stay open while its handler works; then it is rolled back and the handler's tx refuses.
   * Default 2,000: every other writer of the file waits meanwhile. Raise it for one slow job, not for a busy server.
   */
  readonly transactionMs?: number
  /**
   * How long a write waits for the writers before it, in this process and in others. Default 3,000; then it is refused with
   * `overloaded`. Lower it where clients give up sooner.
   */
  readonly waitMs?: number
  /** How many writes may wait; one more is refused at once. Default 10,000: more than can be written within `waitMs`. */
  readonly waitersMax?: number
  /** Local deadlines and the spread of retries; never a lease. Default: the process's clock. Replace it in tests. */
  readonly clock?: Clock
}

export interface SqliteStore extends FullStore<SqliteTx> {
  /**
   * Creates or upgrades the tables. Safe from several processes at once, and cheap when there is nothing to do. Refuses, and changes nothing,
   * in a file whose tables of these names Latchkey did not make, or that a newer release has changed beyond this one.
   */
  migrate(options?: MigrateOptions): Promise<void>
  check(): Promise<StoreCheck>
  /**
   * Runs the application's own writes, on its own handle, when no transaction of Latchkey is open in this process and no
   * other starts, so that they do not meet SQLITE_BUSY. The turn ends with `work`, or after `transactionMs`. Inside, hand
   * over a transaction of your own (`operation.run({ tx: db, … })`); an operation without one would wait for this turn.
   */
  exclusive<T>(work: () => T | Promise<T>): Promise<T>
  /** Lets the write under way finish, refuses the others, closes the handles. */
  close(): Promise<void>
}

function traits(waitMs: number): StoreTraits {
  return {
    kinds: everyKind,
    transactional: true,
    durable: true,
    clock: 'store',
    processes: 'many',
    fence: 'dense',
    faculties: everyFaculty,
    connections: undefined,
    queueMsMax: waitMs,
  }
}

export function openSqliteStore(options: SqliteStoreOptions): SqliteStore {
  const { path, open, transactionMs = 2_000, waitMs = 3_000, waitersMax = 10_000, clock = systemClock } = options
  const observed: Observed = { observer: undefined }
  const database = openDatabase({ path, open, clock, waitMs, waitersMax, observed })
  return assembled({
    database,
    transactions: openTransactions(),
    recordsLines: false,
    transactionMs,
    observe: observer => void (observed.observer = observer),
    async exclusive(work) {
      const leave = await database.enter(waitMs)
      const cancel = clock.after(transactionMs, leave)
      try {
        return await work()
      } finally {
        cancel()
        leave()
      }
    },
  })
}

interface StoreParts extends Required<Pick<SqliteStore, 'observe' | 'exclusive'>> {
  /** Its writes record lines of the trail, or they do not. */
  readonly database: Database
  readonly recordsLines: boolean
  readonly transactions: OpenTransactions
  readonly transactionMs: number
}

function assembled(parts: StoreParts): SqliteStore {
  const { database, recordsLines, transactions, transactionMs, observe, exclusive } = parts
  const recordWith = recordsLines ? { recordWith: recordingHandle } : {}
  let recording: SqliteStore | undefined
  const store: SqliteStore = {
    name: 'sqlite',
    traits: traits(database.waitMs),
    observe,
    transactor: sqliteTransactor({ database, transactions, transactionMs, ...recordWith }),
    steps: sqliteSteps(database),
    phases: sqlitePhases(database, transactions),
    outbox: sqliteOutbox(database, transactions),
    reconciliation: sqliteReconciliation(database),
    ledgers: sqliteLedgers(database),
    values: sqliteValues(database),
    erasure: sqliteErasure(database),
    auditRecords: sqliteAuditRecords(database, () => (recording ??= recordsLines ? store : recordingOf(parts))),
    quotas: sqliteQuotas(database),
    inbox: sqliteInbox(database),
    references: sqliteReferences(database, transactions),
    admin: sqliteAdmin(database),

    // A duplicate is answered without the write lock, also while another key's transaction is open.
    claim: request =>
      database.readOrWrite<ClaimResult>(request.identity.id, {
        seen: (record, handle) => notGranted(handle, record, request),
        write: handle => claim(handle, request),
      }),
    enqueue: request =>
      database.readOrWrite<EnqueueResult>(request.identity.id, {
        seen: notQueued,
        write: handle => enqueue(handle, request),
      }),
    read: id => database.readRow(id, record => record),
    heartbeat: (owned, leaseMs) => database.write(handle => heartbeat(handle, owned, leaseMs)),
    complete: (claim, outcome, retentionMs) =>
      database.writeItem({ item: { claim, outcome, retentionMs }, many: completeMany }),
    fail: (owned, failure) => database.write(handle => fail(handle, owned, failure)),
    release: (id, claimId) => database.write(handle => release(handle, id, claimId)),
    releaseMany: claims => database.write(handle => releaseMany(handle, claims)),

    sweep: which => database.write(handle => sweep(handle, which)),
    resumable: which => database.read(handle => resumable(handle, which)),
    park: (owned, cause) => database.write(handle => park(handle, owned, cause)),
    reap: which => database.write(handle => reap(handle, which) + eraseMarked(handle, which.limit)),
    list: listing => database.read(handle => list(handle, listing)),
    inspect: id => database.snapshot(handle => inspect(handle, id)),
    settle: (id, verdict, act, retentionMs) =>
      database.write(handle => settle(handle, id, { verdict, act, retentionMs })),
    forget: (id, act) => database.write(handle => forget(handle, id, act)),
    unpark: (id, act) => database.write(handle => unpark(handle, id, act)),

    check: () => database.check(),
    migrate: options => database.migrate(options),
    exclusive,
    close: () => database.close(),
  }
  return store
}

function recordingOf(parts: StoreParts): SqliteStore {
  return assembled({ ...parts, database: recordingDatabase(parts.database), recordsLines: true })
}

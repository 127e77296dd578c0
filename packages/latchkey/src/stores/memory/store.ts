/** The store in memory, assembled. Each call runs without an await between its reading and its writing, which makes it atomic. */
import type { Clock } from '../../ports/clock.ts'
import type { FullStore, Transactor } from '../../ports/store.ts'
import { openTransactions, type OpenTransactions } from './atomic/open-transactions.ts'
import { copyingTable, type MemoryTable, type MemoryTx } from './atomic/transaction.ts'
import { memoryAdmin } from './admin/index.ts'
import { memoryTransactor } from './atomic/transactor.ts'
import { type TurnQueue, turnQueue } from './atomic/turn-queue.ts'
import { memoryAuditRecords } from './audit/index.ts'
import { recordingTables } from './audit/trail.ts'
import { everyFaculty, everyKind } from '../shared/faculties.ts'
import { eraseMarked, memoryErasure } from './erasure/index.ts'
import { memoryInbox } from './inbox/index.ts'
import { claim } from './keys/claim.ts'
import { complete } from './keys/complete.ts'
import { enqueue } from './keys/enqueue.ts'
import { fail, park } from './keys/fail.ts'
import { heartbeat } from './keys/heartbeat.ts'
import { forget, inspect, list, unpark } from './keys/operator.ts'
import { reap } from './keys/reap.ts'
import { release, releaseMany } from './keys/release.ts'
import { resumable } from './keys/resumable.ts'
import { readRecord } from './keys/row.ts'
import { sweep } from './keys/sweep.ts'
import { memoryOutbox } from './outbox/index.ts'
import { memoryQuotas } from './quotas/index.ts'
import { memoryLedgers, memoryReconciliation } from './reconcile/index.ts'
import { settle } from './reconcile/settle.ts'
import { memoryReferences } from './references/index.ts'
import { memoryPhases } from './steps/phases.ts'
import { memorySteps } from './steps/steps.ts'
import { memoryValues } from './values/index.ts'
import type { Tables } from './tables.ts'

export interface MemoryStoreOptions {
  /** Where time comes from. Default: the process's clock. Replace it in a test that lets leases run out. */
  readonly clock?: Clock
  /**
   * How long a transaction may stay open while its handler works; then it is rolled back and the handler's tx refuses.
   * Default 2,000: every other transaction waits meanwhile. Raise it to step through a handler in a debugger.
   */
  readonly transactionMs?: number
  /** How long a transaction waits for those before it. Default 3,000; then it is refused with `overloaded`. */
  readonly waitMs?: number
}

export interface MemoryStore extends FullStore<MemoryTx> {
  /** A table that handlers write through `tx.table(name)`, as it is committed. */
  table<Value>(name: string): Pick<MemoryTable<Value>, 'get' | 'entries'>
  /**
   * A transaction of the application's own, to be handed in as `operation.run({ tx, … }, …)`. It commits when `work` resolves,
   * and rolls back and rejects with the same error when it rejects.
   */
  transaction<T>(work: (tx: MemoryTx) => Promise<T>): Promise<T>
}

/** `tables` are handed in, so that a simulation can watch what becomes of them. */
export function openMemoryStore(tables: Tables, options: Required<MemoryStoreOptions>): MemoryStore {
  const parts = { tables, options, transactions: openTransactions(), queue: turnQueue(options.clock) }
  return assembled({ ...parts, recordsLines: false })
}

interface StoreParts {
  /** As they are: with `recordsLines`, the store adds lines of the trail to what it writes there. */
  readonly tables: Tables
  readonly options: Required<MemoryStoreOptions>
  readonly transactions: OpenTransactions
  readonly queue: TurnQueue
  readonly recordsLines: boolean
}

function assembled(parts: StoreParts): MemoryStore {
  const { options, transactions, queue, recordsLines } = parts
  const tables = recordsLines ? recordingTables(parts.tables) : parts.tables
  // Drafts are of the tables themselves, and `record` adds the line: a transaction of the application's may come from either store.
  const transactor = memoryTransactor(
    { ...options, tables: parts.tables, queue },
    transactions,
    recordsLines ? recordingTables : undefined,
  )
  let recording: MemoryStore | undefined
  const store: MemoryStore = {
    name: 'memory',
    traits: {
      kinds: everyKind,
      transactional: true,
      durable: false,
      clock: 'client',
      processes: 'one',
      fence: 'dense',
      faculties: everyFaculty,
      connections: undefined,
    },
    transactor,
    steps: memorySteps(tables),
    phases: memoryPhases(transactions),
    outbox: memoryOutbox(tables, transactions),
    reconciliation: memoryReconciliation(tables),
    ledgers: memoryLedgers(tables),
    values: memoryValues(tables),
    erasure: memoryErasure(tables),
    auditRecords: memoryAuditRecords(
      tables,
      () => (recording ??= recordsLines ? store : assembled({ ...parts, recordsLines: true })),
    ),
    quotas: memoryQuotas(tables),
    inbox: memoryInbox(tables),
    references: memoryReferences(tables, transactions),
    admin: memoryAdmin(tables),

    claim: async request => claim(tables, request),
    enqueue: async request => enqueue(tables, request),
    read: async id => readRecord(tables, id),
    heartbeat: async (owned, leaseMs) => heartbeat(tables, owned, leaseMs),
    complete: async (owned, outcome, retentionMs) => complete(tables, owned, { outcome, retentionMs }),
    fail: async (owned, failure) => fail(tables, owned, failure),
    release: async (id, claimId) => release(tables, id, claimId),
    releaseMany: async claims => releaseMany(tables, claims),

    sweep: async which => sweep(tables, which),
    resumable: async which => resumable(tables, which),
    park: async (owned, cause) => park(tables, owned, cause),
    reap: async which => reap(tables, which) + eraseMarked(tables, which.limit),

    list: async listing => list(tables, listing),
    inspect: async id => inspect(tables, id),
    settle: async (id, verdict, act, retentionMs) => settle(tables, id, { verdict, act, retentionMs }),
    forget: async (id, act) => forget(tables, id, act),
    unpark: async (id, act) => unpark(tables, id, act),

    table: <Value>(name: string) => copyingTable<Value>(work => work(tables.table(name))),
    transaction: work => transaction(transactor, work),
  }
  return store
}

async function transaction<T>(transactor: Transactor<MemoryTx>, work: (tx: MemoryTx) => Promise<T>): Promise<T> {
  let value: { readonly of: T } | undefined
  const end = await transactor.transaction(async tx => {
    await transactor.adopt(tx)
    value = { of: await work(tx) }
    return 'commit'
  })
  if (end.kind === 'conflict') throw end.cause
  // It was committed, so the work has resolved.
  return (value as { readonly of: T }).of
}

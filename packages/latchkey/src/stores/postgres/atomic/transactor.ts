/** Atomic operations on PostgreSQL: transactions of our own, and those that callers hand in. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { AtomicRequest, KeyRecord, Transactor } from '../../../ports/store.ts'
import { proveTransaction } from '../connection/adopted.ts'
import { isLockTimeout, storeError } from '../connection/errors.ts'
import { ignoreErrorsOfCaller } from '../connection/ignore-errors.ts'
import { shareOf } from '../connection/pool-share.ts'
import type { Sessions } from '../connection/prepared.ts'
import { inTransaction, notAdopted, runIn } from '../connection/statement.ts'
import { beginReadCommitted, openTransaction } from '../connection/transaction.ts'
import { watchCommands } from '../connection/watch-commands.ts'
import { connectionWait, type Observed } from '../../shared/observed.ts'
import type { PgClient, PgPool } from '../driver.ts'
import { keyRecord, type KeyRow, needsNoDecision, readStatement } from '../keys/read.ts'
import type { Dialect } from '../sql/names.ts'
import { endOwnTransaction, openOwnTransaction, type Transactions } from './own-transaction.ts'
import { type AtomicCalls, atomicCalls, lockOf } from './reserve-and-record.ts'
import { type AtomicTransaction, handlerEnd, recordAtEnd, recordIn, reserveIn } from './transaction.ts'

export interface TransactorOptions {
  readonly pool: PgPool
  readonly sql: Dialect
  readonly schemaName: string
  /** For transactions of our own: in those that callers hand in, statements are not named. */
  readonly sessions: Sessions
  /** What is committed, together with other reads. */
  readonly read: (id: string) => Promise<KeyRecord | undefined>
  readonly observed: Observed
}

export function postgresTransactor(options: TransactorOptions): Transactor<PgClient> {
  const { pool, sql, schemaName, read, observed } = options
  const share = shareOf(pool)
  const transactions: Transactions = { calls: atomicCalls(sql), share, open: new WeakMap() }
  const transactionOf = (tx: PgClient): AtomicTransaction => {
    const transaction = transactions.open.get(tx)
    if (transaction === undefined) throw notAdopted()
    return transaction
  }
  /** Undefined: the handler may have to run. */
  const look = async ({ identity }: AtomicRequest): Promise<PgClient | undefined> => {
    const record = await read(identity.id)
    if (record === undefined || !needsNoDecision(record)) return undefined
    // Never used as a client: a row that is seen is not reserved, and no handler runs.
    const tx = {} as PgClient
    transactions.open.set(tx, seenWithout(transactions.calls, record))
    return tx
  }
  return {
    async transaction(work, first) {
      const connected = connectionWait(observed)
      // A request that is answered from its row waits for no other, and needs no place.
      let seen: PgClient | undefined
      const isSeen = async () => first !== undefined && (seen = await look(first)) !== undefined
      if (!share.tryEnter() && !(await share.enter(isSeen)) && seen !== undefined) {
        await work(seen)
        return { kind: 'rolled-back' }
      }
      try {
        const own = await openOwnTransaction(options, transactions, { first, connected })
        return await endOwnTransaction(own, schemaName, () => work(own.tx))
      } finally {
        share.leave()
      }
    },
    async adopt(tx) {
      ignoreErrorsOfCaller(tx)
      await proveTransaction(tx, sql.schema)
      // The caller's own object comes back, so that a handler gets what its caller handed in, Drizzle's tx included;
      // `reserve` and `record` know all of these shapes.
      const adopted = tx as PgClient
      const { open, calls } = transactions
      if (!open.has(adopted)) open.set(adopted, adoptedTransaction(adopted, sql, calls))
      return adopted
    },
    async reserve(tx, request) {
      const transaction = transactionOf(tx)
      const reservation = await reserveIn(transaction, request)
      if (!transaction.isOurs && reservation.kind === 'free') transaction.watch ??= watchCommands(tx)
      return reservation
    },
    record: async (tx, request, outcome, reservedFence) =>
      recordIn(transactionOf(tx), { request, outcome, reservedFence }),
    recordLast: async (tx, request, outcome, reservedFence) =>
      recordAtEnd(transactionOf(tx), { request, outcome, reservedFence }),
    endOf: tx => endOf(transactionOf(tx)),
    readAfterCommit: (id, waitMs) => readAfterCommit(options, id, waitMs),
  }
}

function seenWithout(calls: AtomicCalls, record: KeyRecord): AtomicTransaction {
  const none = () => Promise.reject(new LatchkeyError('invariant', 'a row was seen without a transaction'))
  const found = { kind: 'seen', record } as const
  return { calls, runs: { call: none, run: none }, isOurs: true, watch: undefined, found }
}

function adoptedTransaction(tx: PgClient, sql: Dialect, calls: AtomicCalls): AtomicTransaction {
  const run = runIn(tx, sql)
  return { calls, runs: { call: ({ text }, values) => run(text, values), run }, isOurs: false, watch: undefined }
}

/** The caller may use its object for another transaction, which begins anew. */
function endOf(transaction: AtomicTransaction): ReturnType<Transactor<PgClient>['endOf']> {
  const end = handlerEnd(transaction) ?? 'open'
  if (transaction.isOurs) return end
  transaction.watch?.stop()
  transaction.watch = undefined
  delete transaction.hasVanished
  return end
}

/**
 * The lost transaction holds the identity's lock until it has ended, and its rows are visible before the lock is free. So
 * a reader that gets the lock, and reads in the next statement, sees how it ended.
 */
async function readAfterCommit(
  { pool, sql }: TransactorOptions,
  id: string,
  waitMs: number,
): Promise<KeyRecord | undefined> {
  const transaction = await openTransaction({ pool, schema: sql.schema }, beginReadCommitted)
  const run = inTransaction(transaction.client, sql.schema)
  try {
    // Zero would mean no limit.
    await run(`select pg_catalog.set_config('lock_timeout', $1, true)`, [`${Math.max(1, Math.ceil(waitMs))}ms`])
    await run('select pg_catalog.pg_advisory_xact_lock($1::bigint)', [lockOf(id).toString()])
    const [row] = await run<KeyRow>(readStatement(sql), [id])
    return row && keyRecord(row)
  } catch (error) {
    if (!isLockTimeout(error)) throw storeError(error, sql.schema)
    throw new LatchkeyError(
      'store-unavailable',
      `the transaction of identity ${id} whose COMMIT was not answered is still open after ${waitMs} ms: try again later`,
      { cause: error },
    )
  } finally {
    await transaction.rollback()
  }
}

/** Atomic operations: key row, business rows and outcome in one commit. */
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'
import type { Recorded, Transactor } from '../../../ports/store.ts'
import type { Database } from '../connection/database.ts'
import type { SqliteDatabase } from '../driver.ts'
import { isBusy, isStaleSnapshot } from '../connection/errors.ts'
import { notGranted, record, reserve } from '../keys/claim.ts'
import { type Handle, handleOf, isDatabase, isInTransaction } from '../connection/handle.ts'
import { readRecord } from '../keys/row.ts'
import { notATransaction, type OpenTransactions } from './open-transactions.ts'
import { adoptedTransaction, ownTransaction, type OpenTransaction, type SqliteTx } from './transaction.ts'

export interface TransactorOptions {
  readonly database: Database
  readonly transactions: OpenTransactions
  readonly transactionMs: number
  /** What `record` writes with, over the handle of the transaction. */
  readonly recordWith?: (handle: Handle) => Handle
}

export function sqliteTransactor(options: TransactorOptions): Transactor<SqliteTx> {
  const { database, transactions, transactionMs, recordWith = handle => handle } = options
  const adopted = new WeakMap<SqliteDatabase, OpenTransaction>()
  // Which transaction of this process holds, or is about to hold, an identity: a concurrent duplicate does not stand in the queue.
  const holders = new Map<string, OpenTransaction>()

  const adoptHandle = (own: SqliteDatabase): OpenTransaction => {
    const transaction = adopted.get(own) ?? adoptedTransaction(database, own)
    adopted.set(own, transaction)
    transactions.add(transaction)
    return transaction
  }

  return {
    async transaction(work) {
      const transaction = ownTransaction(database, transactionMs)
      transactions.add(transaction)
      try {
        const wish = await Promise.race([work(transaction.tx), transaction.overdue])
        if (transaction.wasEndedInside()) return rolledBackInside
        if (wish === 'commit') return transaction.commit()
        transaction.rollback()
        return { kind: 'rolled-back' }
      } catch (error) {
        if (transaction.wasEndedInside()) return { ...rolledBackInside, error }
        transaction.rollback()
        throw error
      } finally {
        for (const id of transaction.identities) if (holders.get(id) === transaction) holders.delete(id)
      }
    },

    async adopt(tx) {
      const transaction = proven(tx, database, { known: transactions, adoptHandle })
      if (transaction.phase() === 'idle') await database.translateErrors(() => transaction.begin())
      return transaction.tx
    },

    async reserve(tx, request) {
      const transaction = transactions.of(tx)
      const { id } = request.identity
      if (transaction.phase() === 'idle') {
        // A replay needs no lock: it is answered while others write.
        const seen = await database.readRow(id, (record, handle) => notGranted(handle, record, request))
        if (seen) return seen
        const holder = holders.get(id)
        if (holder !== undefined && holder !== transaction) return { kind: 'busy' }
        holders.set(id, transaction)
        transaction.identities.add(id)
      }
      const lock = await takeLock(database, transaction)
      return lock === 'busy'
        ? { kind: 'busy' }
        : database.translateErrors(async () => transaction.use(handle => reserve(handle, request)))
    },

    record: (tx, request, outcome, reservedFence) =>
      database.translateErrors(async () =>
        recordIn(transactions.of(tx), handle => record(recordWith(handle), request, { outcome, reservedFence })),
      ),

    // SQLite does not report by which statement a handle left its transaction.
    endOf: tx => (transactions.of(tx).wasEndedInside() ? 'unseen' : 'open'),

    async readAfterCommit(id, waitMs) {
      const read = (handle: Handle) => readRecord(handle, id)
      return database.readAfterWriters(waitMs, read).catch(() => database.read(read))
    },
  }
}

function recordIn(transaction: OpenTransaction, write: (handle: Handle) => Recorded): Recorded {
  return transaction.wasEndedInside() ? 'ended' : transaction.use(write)
}

/** Every COMMIT on our own connection is refused, and no other code has that connection: what ended there was rolled back. */
const rolledBackInside = { kind: 'ended-by-handler', how: 'rolled-back' } as const

/**
 * `busy`: another process kept the file locked all the while. SQLite does not report for which identity, so it may be this
 * one; nothing ran.
 */
async function takeLock(database: Database, transaction: OpenTransaction): Promise<'taken' | 'busy'> {
  try {
    await database.translateErrors(() => transaction.begin())
    return 'taken'
  } catch (error) {
    if (!isLatchkeyError(error) || !isBusy(error.cause)) throw error
    if (!isStaleSnapshot(error.cause)) return 'busy'
    throw new LatchkeyError(
      'store-unavailable',
      'this transaction read the file before another one wrote to it, so SQLite refuses its writes: start it with BEGIN IMMEDIATE',
      { cause: error.cause },
    )
  }
}

function proven(
  tx: unknown,
  database: Database,
  { known, adoptHandle }: { known: OpenTransactions; adoptHandle: (own: SqliteDatabase) => OpenTransaction },
): OpenTransaction {
  if (typeof tx !== 'object' || tx === null) return notATransaction(`tx is ${tx === null ? 'null' : typeof tx}`)
  const transaction = known.find(tx)
  if (transaction !== undefined)
    return transaction.phase() === 'ended' ? notATransaction('this tx has ended') : transaction
  if (!isDatabase(tx)) return notATransaction('tx is neither a tx of this store nor a handle of its driver')
  if (!isInTransaction(tx))
    return notATransaction('this handle has no open transaction: start one with BEGIN IMMEDIATE')
  const main = handleOf(tx)
    .query('PRAGMA database_list')
    .find(row => row.name === 'main')
  if (!database.isSameFile(String(main?.file ?? ''))) return notATransaction('this handle is open on another file')
  return adoptHandle(tx)
}

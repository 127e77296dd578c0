/** Atomic operations: key row, business rows and outcome in one commit. */
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'
import type { AtomicRequest, Recorded, Transactor } from '../../../ports/store.ts'
import type { Database } from '../connection/database.ts'
import type { SqliteDatabase } from '../driver.ts'
import { isBusy, isStaleSnapshot } from '../connection/errors.ts'
import { notGranted, record, reserve } from '../keys/claim.ts'
import { type Handle, handleOf, isDatabase, isInTransaction } from '../connection/handle.ts'
import { readRecord } from '../keys/row.ts'
import { noTransaction, type Scopes } from '../connection/open-transactions.ts'
import { adoptedScope, ownScope, type Scope, type SqliteTx } from '../connection/transaction.ts'

export interface TransactorOptions {
  readonly database: Database
  readonly scopes: Scopes
  readonly transactionMs: number
}

export function sqliteTransactor({ database, scopes, transactionMs }: TransactorOptions): Transactor<SqliteTx> {
  const adopted = new WeakMap<SqliteDatabase, Scope>()
  // Who holds, or is about to hold, an identity in this process. A twin is told at once instead of standing in the queue.
  const holders = new Map<string, Scope>()

  const adoptHandle = (own: SqliteDatabase): Scope => {
    const scope = adopted.get(own) ?? adoptedScope(database, own)
    adopted.set(own, scope)
    scopes.add(scope)
    return scope
  }

  return {
    async transaction(work) {
      const scope = ownScope(database, transactionMs)
      scopes.add(scope)
      try {
        const wish = await Promise.race([work(scope.tx), scope.overdue])
        if (scope.wasEndedInside()) return rolledBackInside
        if (wish === 'commit') return scope.commit()
        scope.rollback()
        return { kind: 'rolled-back' }
      } catch (error) {
        if (scope.wasEndedInside()) return { ...rolledBackInside, error }
        scope.rollback()
        throw error
      } finally {
        for (const id of scope.identities) if (holders.get(id) === scope) holders.delete(id)
      }
    },

    async adopt(tx) {
      const scope = proven(tx, database, { known: scopes, adoptHandle })
      if (scope.phase() === 'idle') await database.told(() => scope.begin())
      return scope.tx
    },

    async reserve(tx, request) {
      const scope = scopes.of(tx)
      const { id } = request.identity
      if (scope.phase() === 'idle') {
        // A replay needs no lock: it is answered while others write.
        const seen = await database.look(id, (record, handle) => notGranted(handle, record, request))
        if (seen) return seen
        const holder = holders.get(id)
        if (holder !== undefined && holder !== scope) return { kind: 'busy' }
        holders.set(id, scope)
        scope.identities.add(id)
      }
      const lock = await takeLock(database, scope)
      return lock === 'busy'
        ? { kind: 'busy' }
        : database.told(async () => scope.use(handle => reserve(handle, request)))
    },

    record: (tx, request, outcome, reservedFence) =>
      database.told(async () => recordIn(scopes.of(tx), request, { outcome, reservedFence })),

    // SQLite does not say by which statement a handle left its transaction.
    endOf: tx => (scopes.of(tx).wasEndedInside() ? 'unseen' : 'open'),

    async readAfterCommit(id, waitMs) {
      const look = (handle: Handle) => readRecord(handle, id)
      return database.readAfterWriters(waitMs, look).catch(() => database.read(look))
    },
  }
}

function recordIn(scope: Scope, request: AtomicRequest, answer: Parameters<typeof record>[2]): Recorded {
  return scope.wasEndedInside() ? 'ended' : scope.use(handle => record(handle, request, answer))
}

/** Every COMMIT on our own connection is refused, and nobody else has that: what ended there was rolled back. */
const rolledBackInside = { kind: 'ended-by-handler', how: 'rolled-back' } as const

/**
 * `busy`: another process kept the file locked all the while. SQLite does not say for which identity, so it may be this
 * one; nothing ran.
 */
async function takeLock(database: Database, scope: Scope): Promise<'taken' | 'busy'> {
  try {
    await database.told(() => scope.begin())
    return 'taken'
  } catch (error) {
    if (!isLatchkeyError(error) || !isBusy(error.cause)) throw error
    if (!isStaleSnapshot(error.cause)) return 'busy'
    throw new LatchkeyError(
      'store-unavailable',
      'this transaction read the file before another one wrote to it, so SQLite lets it write no more: start it with BEGIN IMMEDIATE',
      { cause: error.cause },
    )
  }
}

function proven(
  tx: unknown,
  database: Database,
  { known, adoptHandle }: { known: Scopes; adoptHandle: (own: SqliteDatabase) => Scope },
): Scope {
  if (typeof tx !== 'object' || tx === null) return noTransaction(`tx is ${tx === null ? 'null' : typeof tx}`)
  const scope = known.find(tx)
  if (scope !== undefined) return scope.phase() === 'ended' ? noTransaction('this tx has ended') : scope
  if (!isDatabase(tx)) return noTransaction('tx is neither a tx of this store nor a handle of its driver')
  if (!isInTransaction(tx)) return noTransaction('this handle has no open transaction: start one with BEGIN IMMEDIATE')
  const main = handleOf(tx)
    .query('PRAGMA database_list')
    .find(row => row.name === 'main')
  if (!database.isSameFile(String(main?.file ?? ''))) return noTransaction('this handle is open on another file')
  return adoptHandle(tx)
}

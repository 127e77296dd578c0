/** Atomic operations on PostgreSQL: transactions of our own, and those that callers hand in. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { AtomicRequest, KeyRecord, Transactor } from '../../ports/store.ts'
import { atomicCalls, lockOf, type AtomicRuns } from './atomic.ts'
import { proveTransaction } from './adopt.ts'
import { ignoreErrorsOfCaller } from './connection-errors.ts'
import { keyRecord, readStatement, type KeyRow } from './claim.ts'
import type { Dialect } from './dialect.ts'
import type { PgClient, PgPool } from './driver.ts'
import type { Send } from './prepared.ts'
import { inTransaction, runIn } from './run.ts'
import { isConflict, isLockTimeout, storeError } from './sqlstate.ts'
import { beginReadCommitted, openTransaction } from './transaction.ts'

export interface TransactorOptions {
  readonly pool: PgPool
  readonly sql: Dialect
  readonly schemaName: string
  /** For transactions of our own: those that callers hand in go as they come. */
  readonly send: Send
}

export function postgresTransactor(options: TransactorOptions): Transactor<PgClient> {
  const { pool, sql, schemaName, send } = options
  const calls = atomicCalls(sql)
  const beginnings = new WeakMap<object, string>()
  const ours = new WeakSet<object>()
  const early = new WeakMap<object, { readonly request: AtomicRequest; readonly lock: unknown } | undefined>()
  /** What goes with the COMMIT. */
  const atEnd = new WeakMap<object, string>()
  const beganOf = (tx: PgClient): string => {
    const began = beginnings.get(tx)
    if (began === undefined) throw new LatchkeyError('invariant', 'an outcome was recorded without a reservation')
    return began
  }
  const runsOn = (tx: PgClient): AtomicRuns => {
    const run = runIn(tx, sql)
    if (!ours.has(tx)) return { call: run, run }
    return { call: inTransaction({ query: (text, values = []) => send(tx, text, values) }, sql.schema), run }
  }
  return {
    async transaction(work, first) {
      const transaction = await openTransaction(pool, sql.schema, calls.begin(first))
      const { client } = transaction
      ours.add(client)
      early.set(client, first && { request: first, lock: transaction.beginning.rows[0] })
      atEnd.delete(client)
      let decision: 'commit' | 'rollback'
      try {
        decision = await work(client)
      } catch (cause) {
        await transaction.rollback()
        if (isConflict(cause, schemaName)) return { kind: 'conflict', cause }
        throw cause
      }
      if (decision === 'commit') return transaction.commit(atEnd.get(client))
      await transaction.rollback()
      return { kind: 'rolled-back' }
    },
    async adopt(tx) {
      ignoreErrorsOfCaller(tx)
      await proveTransaction(tx, sql.schema)
      // The caller's own object comes back, so that a handler gets what its caller handed in, Drizzle's tx included;
      // `reserve` and `record` know all of these shapes.
      return tx as PgClient
    },
    async reserve(tx, request) {
      const begun = early.get(tx)
      early.delete(tx)
      const lock = begun?.request === request ? begun.lock : undefined
      const { reservation, began } = await calls.reserve(runsOn(tx), request, lock)
      beginnings.set(tx, began)
      return reservation
    },
    record: (tx, request, outcome, reservedFence) =>
      calls.record(runsOn(tx), { request, outcome, reservedFence, began: beganOf(tx) }),
    async recordLast(tx, request, outcome, reservedFence) {
      const recording = { request, outcome, reservedFence, began: beganOf(tx) }
      const text = ours.has(tx) ? calls.recordText(recording) : undefined
      if (text === undefined) return calls.record(runsOn(tx), recording)
      atEnd.set(tx, text)
      return 'recorded'
    },
    readAfterCommit: (id, waitMs) => readAfterCommit(options, id, waitMs),
  }
}

/**
 * The lost transaction holds the identity's lock until it has ended, and its rows are visible before the lock is free. So
 * who gets the lock, and reads in the next statement, sees the truth.
 */
async function readAfterCommit(
  { pool, sql }: TransactorOptions,
  id: string,
  waitMs: number,
): Promise<KeyRecord | undefined> {
  const transaction = await openTransaction(pool, sql.schema, beginReadCommitted)
  const run = inTransaction(transaction.client, sql.schema)
  try {
    // Zero would mean no limit.
    await run(`select pg_catalog.set_config('lock_timeout', $1, true)`, [`${Math.max(1, Math.ceil(waitMs))}ms`])
    await run('select pg_catalog.pg_advisory_xact_lock($1::bigint)', [lockOf(id)])
    const [row] = await run<KeyRow>(readStatement(sql), [id])
    return row && keyRecord(row)
  } catch (error) {
    if (!isLockTimeout(error)) throw storeError(error, sql.schema)
    throw new LatchkeyError(
      'store-unavailable',
      `the transaction of identity ${id} whose COMMIT was not answered is still open after ${waitMs} ms: ask again later`,
      { cause: error },
    )
  } finally {
    await transaction.rollback()
  }
}

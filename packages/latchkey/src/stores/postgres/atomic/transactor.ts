/** Atomic operations on PostgreSQL: transactions of our own, and those that callers hand in. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { AtomicRequest, KeyRecord, Transactor } from '../../../ports/store.ts'
import { atomicCalls, lockOf } from './reserve-and-record.ts'
import { proveTransaction } from '../connection/adopted.ts'
import { ignoreErrorsOfCaller } from '../connection/ignore-errors.ts'
import { keyRecord, readStatement, type KeyRow } from '../keys/read.ts'
import type { Dialect } from '../sql/names.ts'
import type { PgClient, PgPool } from '../driver.ts'
import { handlerEnd, type KnownTransaction, recordAtEnd, recordIn, reserveIn } from './transaction-state.ts'
import { endOwnTransaction, lookOnly, openOwnTransaction } from './own-transaction.ts'
import { shareOf } from '../connection/pool-share.ts'
import type { Sessions } from '../connection/prepared.ts'
import { inTransaction, runIn } from '../connection/statement.ts'
import { isLockTimeout, storeError } from '../connection/errors.ts'
import { beginReadCommitted, openTransaction } from '../connection/transaction.ts'
import { watchCommands } from '../connection/watch-commands.ts'

export interface TransactorOptions {
  readonly pool: PgPool
  readonly sql: Dialect
  readonly schemaName: string
  /** For transactions of our own: those that callers hand in go as they come. */
  readonly sessions: Sessions
}

export function postgresTransactor(options: TransactorOptions): Transactor<PgClient> {
  const { pool, sql, schemaName } = options
  const calls = atomicCalls(sql)
  const share = shareOf(pool)
  const open = new WeakMap<object, KnownTransaction>()
  const knownOf = (tx: PgClient): KnownTransaction => {
    const known = open.get(tx)
    if (known === undefined) throw new LatchkeyError('invariant', 'a transaction was used before it was adopted')
    return known
  }
  const openOwn = async (first: AtomicRequest | undefined) => {
    const own = await openOwnTransaction(options, { calls, share, first })
    open.set(own.tx, own.known)
    return own
  }
  /** Without a place: whoever is to be replayed or refused waits for nobody. Undefined: its handler is to run. */
  const look = async (first: AtomicRequest): Promise<PgClient | undefined> => {
    const own = await openOwn(first)
    return (await lookOnly(own, schemaName, first)).kind === 'free' ? undefined : own.tx
  }
  return {
    async transaction(work, first) {
      if (!share.tryEnter()) {
        const seen = first && (await look(first))
        if (seen !== undefined) {
          await work(seen)
          return { kind: 'rolled-back' }
        }
        await share.enter()
      }
      try {
        const own = await openOwn(first)
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
      if (open.has(adopted)) return adopted
      const run = runIn(adopted, sql)
      open.set(adopted, {
        calls,
        runs: { call: ({ text }, values) => run(text, values), run },
        isOurs: false,
        watch: undefined,
      })
      return adopted
    },
    async reserve(tx, request) {
      const known = knownOf(tx)
      const reservation = await reserveIn(known, request)
      if (!known.isOurs && reservation.kind === 'free') known.watch ??= watchCommands(tx)
      return reservation
    },
    record: async (tx, request, outcome, reservedFence) => recordIn(knownOf(tx), { request, outcome, reservedFence }),
    recordLast: async (tx, request, outcome, reservedFence) =>
      recordAtEnd(knownOf(tx), { request, outcome, reservedFence }),
    endOf(tx) {
      const known = knownOf(tx)
      const end = handlerEnd(known) ?? 'open'
      if (known.isOurs) return end
      known.watch?.stop()
      known.watch = undefined
      delete known.hasVanished
      return end
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

/** Atomic operations on PostgreSQL: transactions of our own, and those that callers hand in. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { AtomicRequest, KeyRecord, Recorded, Reservation, Transactor } from '../../ports/store.ts'
import { atomicCalls, lockOf, type AtomicRuns, type Recording } from './atomic.ts'
import { proveTransaction } from './adopt.ts'
import { ignoreErrorsOfCaller } from './connection-errors.ts'
import { keyRecord, readStatement, type KeyRow } from './claim.ts'
import type { Dialect } from './dialect.ts'
import type { PgClient, PgPool } from './driver.ts'
import { endOwnTransaction, handlerEnd } from './own-transaction.ts'
import { shareOf } from './pool-share.ts'
import type { Send } from './prepared.ts'
import { inTransaction, runIn } from './run.ts'
import { isFailedTransaction, isLockTimeout, storeError } from './sqlstate.ts'
import { beginReadCommitted, openTransaction } from './transaction.ts'
import { transactionClient } from './transaction-client.ts'
import { type CommandWatch, watchCommands } from './watch-commands.ts'

export interface TransactorOptions {
  readonly pool: PgPool
  readonly sql: Dialect
  readonly schemaName: string
  /** For transactions of our own: those that callers hand in go as they come. */
  readonly send: Send
}

/** What is known of an open transaction, ours or adopted. */
interface Known {
  readonly runs: AtomicRuns
  readonly isOurs: boolean
  watch: CommandWatch | undefined
  /** When it began, by the server, once something is reserved in it. */
  began?: string
  /** What the beginning has found. */
  first?: { readonly request: AtomicRequest; readonly lock: unknown }
  /** What was found without a place, in a transaction that is over: nothing else can be asked of it. */
  looked?: Reservation
  /** What goes with the COMMIT. */
  atEnd?: string
  /** It was ended by somebody, and the watch has not seen how. */
  hasVanished?: true
}

export function postgresTransactor(options: TransactorOptions): Transactor<PgClient> {
  const { pool, sql, schemaName, send } = options
  const calls = atomicCalls(sql)
  const share = shareOf(pool)
  const open = new WeakMap<object, Known>()
  const knownOf = (tx: PgClient): Known => {
    const known = open.get(tx)
    if (known === undefined) throw new LatchkeyError('invariant', 'a transaction was used before it was adopted')
    return known
  }
  const recordingOf = (known: Known, parts: Omit<Recording, 'began'>): Recording => {
    if (known.began === undefined)
      throw new LatchkeyError('invariant', 'an outcome was recorded without a reservation')
    return { ...parts, began: known.began }
  }
  const record = async (known: Known, recording: Recording): Promise<Recorded> => {
    if (known.watch?.ended() !== undefined) return 'ended'
    if (known.watch?.isAborted() === true) return 'aborted'
    const recorded = await calls.record(known.runs, recording).catch((error: unknown): Recorded => {
      if (isFailedTransaction(error)) return 'aborted'
      throw error
    })
    if (recorded !== 'taken' || known.watch !== undefined) return recorded
    if (await calls.isSame(known.runs, recording)) return 'taken'
    known.hasVanished = true
    return 'ended'
  }
  const openOwn = async (first: AtomicRequest | undefined) => {
    const opened = await openTransaction(pool, sql.schema, calls.begin(first))
    const { client, beginning } = opened
    const watch = watchCommands(client)
    const { tx, close } = transactionClient(client, watch)
    const call = inTransaction({ query: (text, values = []) => send(client, text, values) }, sql.schema)
    const known: Known = { runs: { call, run: runIn(tx, sql) }, isOurs: true, watch }
    if (first !== undefined) known.first = { request: first, lock: beginning.rows[0] }
    open.set(tx, known)
    return { opened, share, watch, known, tx, close, operation: first?.identity.operation }
  }
  /** Without a place: whoever is to be replayed or refused waits for nobody. Undefined: its handler is to run. */
  const look = async (first: AtomicRequest): Promise<PgClient | undefined> => {
    const own = await openOwn(first)
    await endOwnTransaction(own, schemaName, async () => {
      own.known.looked = await reserve(own.known, first)
      return 'rollback'
    })
    return own.known.looked?.kind === 'free' ? undefined : own.tx
  }
  const reserve = async (known: Known, request: AtomicRequest): Promise<Reservation> => {
    if (known.looked !== undefined) return known.looked
    const lock = known.first?.request === request ? known.first.lock : undefined
    delete known.first
    const { reservation, began } = await calls.reserve(known.runs, request, lock)
    known.began = began
    return reservation
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
      if (!open.has(adopted)) {
        const run = runIn(adopted, sql)
        open.set(adopted, { runs: { call: run, run }, isOurs: false, watch: undefined })
      }
      return adopted
    },
    async reserve(tx, request) {
      const known = knownOf(tx)
      const reservation = await reserve(known, request)
      if (!known.isOurs && reservation.kind === 'free') known.watch ??= watchCommands(tx)
      return reservation
    },
    record(tx, request, outcome, reservedFence) {
      const known = knownOf(tx)
      return record(known, recordingOf(known, { request, outcome, reservedFence }))
    },
    async recordLast(tx, request, outcome, reservedFence) {
      const known = knownOf(tx)
      const recording = recordingOf(known, { request, outcome, reservedFence })
      const canWait = known.watch !== undefined && known.watch.ended() === undefined && !known.watch.isAborted()
      const text = canWait ? calls.recordText(recording) : undefined
      if (text === undefined) return record(known, recording)
      known.atEnd = text
      return 'recorded'
    },
    endOf(tx) {
      const known = knownOf(tx)
      const ended = handlerEnd(known) ?? 'open'
      if (known.isOurs) return ended
      known.watch?.stop()
      known.watch = undefined
      delete known.hasVanished
      return ended
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

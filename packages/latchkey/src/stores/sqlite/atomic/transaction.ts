/**
 * Transactions that stay open while a handler works: ours, begun on Latchkey's own connection, and the application's,
 * on a handle of its own. Either way the application's statements go through `SqliteTx`.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { TransactionEnd } from '../../../ports/store.ts'
import { untilFree } from '../connection/open.ts'
import type { Database } from '../connection/database.ts'
import type { SqliteDatabase, SqliteParameter, SqliteRow } from '../driver.ts'
import { isBusy, unavailable } from '../connection/errors.ts'
import { type Handle, handleOf } from '../connection/handle.ts'
import { nestedTransactions } from '../../shared/nested-transaction.ts'

/**
 * What a handler writes with. Synchronous, as the drivers are; every method throws once the transaction has ended. BEGIN, COMMIT
 * and ROLLBACK in pairs are a nested transaction; one that would end the whole is refused.
 */
export interface SqliteTx {
  /** One statement. `changes`: how many rows it wrote. */
  run(sql: string, parameters?: readonly SqliteParameter[]): { changes: number; lastInsertRowid: number | bigint }
  /** The first row, or `undefined`. */
  get(sql: string, parameters?: readonly SqliteParameter[]): SqliteRow | undefined
  all(sql: string, parameters?: readonly SqliteParameter[]): readonly SqliteRow[]
  /** Several statements, without parameters. */
  exec(sql: string): void
}

/** One open transaction, seen from inside the store. */
export interface OpenTransaction {
  readonly tx: SqliteTx
  /** Ours: begins it, if it has not begun yet. The application's: takes the write lock, which a plain BEGIN has not. */
  begin(): Promise<void>
  /** `idle`: not begun yet. */
  phase(): 'idle' | 'open' | 'ended'
  /** By a statement of the handler's, or of the application's on its own handle. */
  wasEndedInside(): boolean
  /** What it holds, or is about to. */
  readonly identities: Set<string>
  /** Runs statements in it; throws when it has ended. */
  use<T>(work: (handle: Handle) => T): T
}

export interface OwnTransaction extends OpenTransaction {
  /** Rejects when the transaction was open for too long; it is rolled back then. */
  readonly overdue: Promise<never>
  commit(): TransactionEnd
  rollback(): void
}

type Phase =
  | { readonly kind: 'idle' }
  | { readonly kind: 'open'; readonly leave: () => void }
  | { readonly kind: 'ended'; readonly error: LatchkeyError }

function over(cause?: unknown): LatchkeyError {
  const message = 'this transaction has ended: its tx is good only until the handler returns'
  return new LatchkeyError('not-a-transaction', message, { cause })
}

/**
 * Not begun at once: until it has read its identity, a duplicate holds no lock and waits for no other writer. `begin` waits for
 * the writers before it.
 */
export function ownTransaction(database: Database, transactionMs: number): OwnTransaction {
  const { atomic, clock } = database
  let phase: Phase = { kind: 'idle' }
  let beginning: Promise<void> | undefined
  let hasEndedInside = false
  let reportOverdue: (error: LatchkeyError) => void = () => {}
  const overdue = new Promise<never>((_, reject) => (reportOverdue = reject))
  overdue.catch(() => undefined)

  const end = (error: LatchkeyError) => {
    // The first reason is the true one.
    if (phase.kind === 'ended') return
    const { leave } = { leave: () => {}, ...phase }
    phase = { kind: 'ended', error }
    leave()
  }
  const rollback = (error: LatchkeyError) => {
    if (phase.kind === 'open') atomic.rollback()
    end(error)
  }
  const expire = () => {
    const error = openForTooLong(transactionMs)
    rollback(error)
    reportOverdue(error)
  }
  const start = () =>
    whenFirst(database, done => {
      // The caller may have given up while this one waited for its turn.
      if (phase.kind === 'ended') throw phase.error
      atomic.handle.exec('BEGIN IMMEDIATE')
      const cancel = clock.after(transactionMs, expire)
      phase = { kind: 'open', leave: () => (cancel(), done()) }
    })
  const use = <T>(work: (handle: Handle) => T): T => {
    if (phase.kind === 'ended') throw phase.error
    if (phase.kind === 'idle') throw new LatchkeyError('not-a-transaction', 'this transaction has not begun yet')
    try {
      return work(atomic.handle)
    } finally {
      if (!atomic.handle.inTransaction()) {
        hasEndedInside = true
        end(endedInside())
      }
    }
  }
  const commit = (): TransactionEnd => {
    if (phase.kind === 'ended') throw phase.error
    if (phase.kind === 'open') {
      try {
        atomic.handle.exec('COMMIT')
      } catch (cause) {
        rollback(over(cause))
        return isBusy(cause) ? { kind: 'conflict', cause } : { kind: 'commit-unknown', cause }
      }
    }
    end(over())
    return { kind: 'committed' }
  }
  return {
    tx: txOver(use),
    overdue,
    begin: () => (beginning ??= start()),
    phase: () => phase.kind,
    wasEndedInside: () => hasEndedInside,
    identities: new Set(),
    use,
    commit,
    rollback: () => rollback(over()),
  }
}

/** Runs `begin` when the turn to write has come and the file is free; `done` ends the turn. */
async function whenFirst({ clock, waitMs, enter }: Database, begin: (done: () => void) => void): Promise<void> {
  const deadlineMs = clock.monotonicMs() + waitMs
  const done = await enter(waitMs)
  try {
    await untilFree(clock, deadlineMs - clock.monotonicMs(), () => begin(done))
  } catch (error) {
    done()
    throw error
  }
}

/** The application's own handle, already proven to be in a transaction on our file. Its end is the application's affair. */
export function adoptedTransaction(database: Database, own: SqliteDatabase): OpenTransaction {
  const handle = handleOf(own)
  const use = <T>(work: (handle: Handle) => T): T => {
    if (!handle.inTransaction()) throw over()
    return work(handle)
  }
  return {
    tx: txOver(use),
    // Writes nothing, and yet needs the write lock. Taken before the read, so that what is read stays true.
    begin: () =>
      untilFree(database.clock, database.waitMs, () => {
        use(() => handle.rows(`UPDATE latchkey_keys SET fence = fence WHERE id = ''`))
      }),
    phase: () => (handle.inTransaction() ? 'open' : 'ended'),
    wasEndedInside: () => !handle.inTransaction(),
    identities: new Set(),
    use,
  }
}

function txOver(use: <T>(work: (handle: Handle) => T) => T): SqliteTx {
  const nested = nestedTransactions()
  /** A COMMIT in the handler would make its rows durable without the key: the next retry would do the work again. */
  const send = <T>(sql: string, sendTo: (handle: Handle, sql: string) => T): T =>
    use(handle => {
      const instead = nested.enter(sql)
      if (instead === undefined) return sendTo(handle, sql)
      try {
        if (instead.kind === 'rollback') handle.exec(`ROLLBACK TO ${instead.savepoint}`)
        return sendTo(handle, `${instead.kind === 'begin' ? 'SAVEPOINT' : 'RELEASE'} ${instead.savepoint}`)
      } catch (error) {
        nested.undo(instead)
        throw error
      }
    })
  return {
    run: (sql, parameters) =>
      send(sql, (handle, text) => {
        handle.query(text, parameters)
        const [row] = handle.rows('SELECT changes() AS changes, last_insert_rowid() AS rowid')
        return { changes: Number(row?.changes), lastInsertRowid: row?.rowid as number | bigint }
      }),
    get: (sql, parameters) => send(sql, (handle, text) => handle.query(text, parameters)[0]),
    all: (sql, parameters) => send(sql, (handle, text) => handle.query(text, parameters)),
    exec: sql => send(sql, (handle, text) => handle.exec(text)),
  }
}

function openForTooLong(transactionMs: number): LatchkeyError {
  return unavailable(
    `the transaction was open for ${transactionMs} ms and was rolled back: nothing it did has happened. ` +
      'Every other writer of the file waits for it; make the handler shorter, or raise transactionMs',
  )
}

function endedInside(): LatchkeyError {
  return new LatchkeyError(
    'not-a-transaction',
    'a statement of the handler rolled the transaction back (ON CONFLICT ROLLBACK, RAISE(ROLLBACK), or a full disk)',
  )
}

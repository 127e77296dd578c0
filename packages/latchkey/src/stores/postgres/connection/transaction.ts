/** One transaction on a connection of the pool: begin, and exactly one of commit and rollback. */
import { systemClock } from '../../../ports/clock.ts'
import type { TransactionEnd } from '../../../ports/store.ts'
import { adapted, type PgClient, type PgPool, type PgResult } from '../driver.ts'
import { BinaryWriter } from '../sql/columns.ts'
import { asError, isConflictAtCommit, isDefiniteRefusal, isFailedTransaction, storeError } from './errors.ts'
import {
  type Answered,
  arePrepared,
  asNaming,
  type Batch,
  type Fields,
  sendBatches,
  prepareAll,
  prepared,
  preparedForOne,
  type PreparedStatement,
  type Sessions,
  takesBatches,
} from './prepared.ts'
import { ignoreErrors } from './ignore-errors.ts'
import { rowsOf } from './statement.ts'

/** Statements that are sent in one message: of our own where the session takes it, otherwise as one text. */
export interface Together {
  readonly text: () => string
  /** Absent: only the text. */
  readonly batches?: readonly Batch[]
  /** What will be sent later in the transaction: prepared before it, and not at its end. */
  readonly ahead?: readonly PreparedStatement[]
}

/** What begins a transaction, and what is sent with it. */
export interface Beginning extends Together {
  /** The same for a driver that sends BEGIN by itself: its options, and the rest. */
  readonly level: string
  readonly rest: (() => string) | undefined
}

export interface OpenTransaction {
  readonly client: PgClient
  /** The row that the last of the statements which began it returned. */
  readonly beginning: Fields | undefined
  /** `before` goes in one message with COMMIT. Rejects only when the server refused for a reason of the application's: then nothing was committed. */
  commit(before?: Together): Promise<TransactionEnd>
  /** Never rejects: a connection that cannot roll back is closed, and the server rolls back by itself. */
  rollback(): Promise<void>
}

/**
 * A server that has not answered COMMIT or ROLLBACK by then counts as lost. Long, because a commit may rightly wait for
 * a standby, and giving up early turns a known result into one that has to be looked up.
 */
const endLimitMs = 10_000

/**
 * For work that waits for a lock and then has to see what its holder committed: above READ COMMITTED, which may be the
 * database's default, the snapshot would be older than the wait.
 */
export const beginReadCommitted: Beginning = {
  text: () => 'BEGIN ISOLATION LEVEL READ COMMITTED',
  level: 'ISOLATION LEVEL READ COMMITTED',
  rest: undefined,
}

export interface TransactionOptions {
  readonly pool: PgPool
  readonly schema: string
  /** Absent: all is sent as text. */
  readonly sessions?: Sessions
  /** Called when there is a connection. */
  readonly connected?: (() => void) | undefined
}

export async function openTransaction(
  { pool, schema, sessions, connected }: TransactionOptions,
  begin: Beginning,
): Promise<OpenTransaction> {
  const client = await (pool[adapted]?.begin(begin.level) ?? pool.connect()).catch((error: unknown) => {
    throw storeError(error, schema)
  })
  connected?.()
  const stopIgnoring = ignoreErrors(client)
  const giveBack = (error?: unknown) => {
    stopIgnoring()
    client.release(error === undefined ? undefined : asError(error))
  }
  const send = (together: Together) =>
    sendTogether(client, sessions, together).catch((error: unknown) => {
      sessions?.failed(error)
      throw error
    })
  let beginning: Fields | undefined
  try {
    const first = pool[adapted] === undefined ? begin : restOf(begin)
    beginning = first && (await send(first)).rows[0]
  } catch (error) {
    giveBack(error)
    throw storeError(error, schema)
  }
  return {
    client,
    beginning,
    commit: before => commit(() => send(withCommit(before)), giveBack),
    rollback: () => rollback(client, giveBack),
  }
}

function restOf({ rest }: Beginning): Together | undefined {
  return rest && { text: rest }
}

export const commitStatement: PreparedStatement = prepared('COMMIT', 'COMMIT')
const commitBatch = preparedForOne<undefined>(commitStatement, [])(undefined)
const commitAlone: Together = { text: () => 'COMMIT', batches: [commitBatch] }

function withCommit(before: Together | undefined): Together {
  if (before === undefined) return commitAlone
  const text = () => `${before.text()};COMMIT`
  return before.batches === undefined ? { text } : { text, batches: [...before.batches, commitBatch] }
}

/** Returns the answer to the last of them. */
async function sendTogether(
  client: PgClient,
  sessions: Sessions | undefined,
  { text, batches, ahead = [] }: Together,
): Promise<Pick<Answered, 'command' | 'rows'>> {
  if (batches !== undefined && takesBatches(client)) {
    const isOurs = sessions?.isOurs(client) ?? (await sessions?.findOut(client))
    if (isOurs === true) {
      const naming = asNaming(client)
      if (!arePrepared(naming, ahead)) await prepareAll(naming, ahead)
      const answers = await sendBatches({ client: naming, writer: writerOf(client) }, batches)
      return answers.at(-1) ?? nothing
    }
  }
  const result: PgResult | readonly PgResult[] = await client.query(text())
  // A message of several statements has several results.
  const last: PgResult | undefined = Array.isArray(result) ? result.at(-1) : result
  return last === undefined
    ? nothing
    : { command: last.command, rows: rowsOf<object>(last).map(row => Object.values(row)) }
}

const nothing = { command: '', rows: [] }
/** With a small outcome. A larger one makes the writer larger. */
const messageBytes = 1_024

/** One for each connection, which has one message under way at a time. */
const writers = new WeakMap<PgClient, BinaryWriter>()

function writerOf(client: PgClient): BinaryWriter {
  const known = writers.get(client)
  if (known !== undefined) return known
  const writer = new BinaryWriter(messageBytes)
  writers.set(client, writer)
  return writer
}

async function commit(
  send: () => Promise<Pick<Answered, 'command'>>,
  giveBack: (error?: unknown) => void,
): Promise<TransactionEnd> {
  let result: Pick<Answered, 'command'>
  try {
    result = await limited(send())
  } catch (cause) {
    // Also after a definite refusal: a new connection is cheap beside one in an unknown state.
    giveBack(cause)
    if (isConflictAtCommit(cause)) return { kind: 'conflict', cause }
    // `before` was sent in a transaction that had failed.
    if (isFailedTransaction(cause)) return { kind: 'rolled-back' }
    if (isDefiniteRefusal(cause)) throw cause
    return { kind: 'commit-unknown', cause }
  }
  giveBack()
  // PostgreSQL answers COMMIT with ROLLBACK when an earlier statement failed and its error was swallowed.
  return { kind: result.command === 'ROLLBACK' ? 'rolled-back' : 'committed' }
}

async function rollback(client: PgClient, giveBack: (error?: unknown) => void): Promise<void> {
  try {
    await limited(client.query('ROLLBACK'))
  } catch (error) {
    giveBack(error)
    return
  }
  giveBack()
}

function limited<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = systemClock.after(endLimitMs, () => reject(new Error(`no answer within ${endLimitMs} ms`)))
    answer.then(resolve, reject).finally(cancel)
  })
}

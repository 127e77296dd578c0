/** One transaction on a connection of the pool: begin, and exactly one of commit and rollback. */
import { systemClock } from '../../../ports/clock.ts'
import type { TransactionEnd } from '../../../ports/store.ts'
import type { PgClient, PgPool, PgResult } from '../driver.ts'
import { asError, isConflictAtCommit, isDefiniteRefusal, isFailedTransaction, storeError } from './errors.ts'
import { ignoreErrors } from './ignore-errors.ts'

export interface OpenTransaction {
  readonly client: PgClient
  /** Of the last statement that began it. */
  readonly beginning: PgResult
  /** `before` goes in one message with COMMIT. Rejects only when the server refused for a reason of the application's: then nothing was committed. */
  commit(before?: string): Promise<TransactionEnd>
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
export const beginReadCommitted = 'BEGIN ISOLATION LEVEL READ COMMITTED'

export async function openTransaction(pool: PgPool, schema: string, begin = 'BEGIN'): Promise<OpenTransaction> {
  const client = await pool.connect().catch((error: unknown) => {
    throw storeError(error, schema)
  })
  const stopIgnoring = ignoreErrors(client)
  const giveBack = (error?: unknown) => {
    stopIgnoring()
    client.release(error === undefined ? undefined : asError(error))
  }
  let beginning: PgResult
  try {
    beginning = lastOf(await client.query(begin))
  } catch (error) {
    giveBack(error)
    throw storeError(error, schema)
  }
  return {
    client,
    beginning,
    commit: before => commit(client, giveBack, before),
    rollback: () => rollback(client, giveBack),
  }
}

/** A message of several statements has several results. */
function lastOf(result: PgResult | readonly PgResult[]): PgResult {
  if (!Array.isArray(result)) return result as PgResult
  const last: PgResult | undefined = result.at(-1)
  return last ?? { command: '', rows: [] }
}

async function commit(
  client: PgClient,
  giveBack: (error?: unknown) => void,
  before: string | undefined,
): Promise<TransactionEnd> {
  let result: PgResult
  try {
    result = lastOf(await limited(client.query(before === undefined ? 'COMMIT' : `${before};COMMIT`)))
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

function limited(answer: Promise<PgResult>): Promise<PgResult> {
  return new Promise((resolve, reject) => {
    const cancel = systemClock.after(endLimitMs, () => reject(new Error(`no answer within ${endLimitMs} ms`)))
    answer.then(resolve, reject).finally(cancel)
  })
}

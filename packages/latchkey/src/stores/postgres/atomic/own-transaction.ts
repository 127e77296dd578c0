/** A transaction that we open. It ends as its work asks, unless the work has ended it itself or left it idle while others wait. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { AtomicRequest, TransactionEnd } from '../../../ports/store.ts'
import { isConflict } from '../connection/errors.ts'
import type { PoolShare } from '../connection/pool-share.ts'
import { preparedIn } from '../connection/prepared.ts'
import { inTransaction } from '../connection/statement.ts'
import { transactionClient } from '../connection/transaction-client.ts'
import { type OpenTransaction, openTransaction } from '../connection/transaction.ts'
import { watchCommands } from '../connection/watch-commands.ts'
import type { PgClient } from '../driver.ts'
import type { AtomicCalls } from './reserve-and-record.ts'
import { type AtomicTransaction, handlerEnd } from './transaction.ts'
import type { TransactorOptions } from './transactor.ts'

export interface OwnTransaction extends AtomicTransaction {
  readonly opened: OpenTransaction
  readonly share: PoolShare
  /** What the handler gets, until `close` takes it away. */
  readonly tx: PgClient
  readonly close: (error: () => LatchkeyError) => void
  /** For the error that names the mistake. Undefined: a phase. */
  readonly operation: string | undefined
}

/** What the transactions of one transactor share. */
export interface Transactions {
  readonly calls: AtomicCalls
  readonly share: PoolShare
  /** By what their handlers use: of an adopted transaction that is the caller's own object, which is left as it is. */
  readonly open: WeakMap<object, AtomicTransaction>
}

export async function openOwnTransaction(
  { pool, sql, sessions }: TransactorOptions,
  { calls, share, open }: Transactions,
  { first, connected }: { readonly first: AtomicRequest | undefined; readonly connected: (() => void) | undefined },
): Promise<OwnTransaction> {
  const opened = await openTransaction({ pool, schema: sql.schema, sessions, connected }, calls.begin(first))
  const { client, beginning } = opened
  const watch = watchCommands(client)
  const { tx, directly, close } = transactionClient(client, watch)
  const runs = { call: preparedIn(client, sessions, sql.schema), run: inTransaction(directly, sql.schema) }
  const operation = first?.identity.operation
  const own: OwnTransaction = { calls, runs, isOurs: true, watch, opened, share, tx, close, operation }
  if (first !== undefined) own.first = { request: first, lock: beginning }
  open.set(tx, own)
  return own
}

type Work = () => Promise<'commit' | 'rollback'>
type RequestedEnd = 'commit' | 'rollback' | 'misused'

export async function endOwnTransaction(own: OwnTransaction, schema: string, work: Work): Promise<TransactionEnd> {
  const { opened, close, operation, watch } = own
  try {
    let requested: RequestedEnd
    try {
      requested = await unlessIdle(own, work)
    } catch (cause) {
      close(over)
      watch?.endsNow()
      await opened.rollback()
      const how = handlerEnd(own)
      if (how !== undefined) return { kind: 'ended-by-handler', how, error: cause }
      if (isConflict(cause, schema)) return { kind: 'conflict', cause }
      throw cause
    }
    const misuse = requested === 'misused' ? usedThePool(operation) : undefined
    close(misuse === undefined ? over : () => misuse)
    watch?.endsNow()
    if (requested === 'commit') {
      const end = await opened.commit(own.atEnd)
      const how = end.kind === 'conflict' ? handlerEnd(own) : undefined
      return how === undefined ? end : { kind: 'ended-by-handler', how }
    }
    await opened.rollback()
    if (misuse !== undefined) return { kind: 'misused', cause: misuse }
    const how = handlerEnd(own)
    return how === undefined ? { kind: 'rolled-back' } : { kind: 'ended-by-handler', how }
  } finally {
    watch?.stop()
  }
}

/** What the work asks for, or `misused` if it left the transaction idle while others waited for the pool: it may still be running then. */
function unlessIdle({ opened, share, watch }: OwnTransaction, work: Work): Promise<RequestedEnd> {
  // Another driver does not show whether its connection is idle.
  if (watch === undefined) return work()
  const { client } = opened
  let answers = watch.answers()
  const isIdle = () => {
    const isUnchanged = answers === watch.answers()
    answers = watch.answers()
    return isUnchanged && client.readyForQuery === true && watch.ended() === undefined
  }
  return new Promise<RequestedEnd>((resolve, reject) => {
    const stop = share.watch({ isIdle, onIdle: () => resolve('misused') })
    work().then(
      requested => {
        stop()
        resolve(requested)
      },
      (error: unknown) => {
        stop()
        reject(error)
      },
    )
  })
}

function over(): LatchkeyError {
  return new LatchkeyError(
    'not-a-transaction',
    'this transaction has ended: its tx is valid only until the handler returns',
  )
}

function usedThePool(operation: string | undefined): LatchkeyError {
  const who = operation === undefined ? 'a phase' : `the handler of ${operation}`
  return new LatchkeyError(
    'transaction-rolled-back',
    `${who} left its transaction idle for 5 s while other requests waited for a connection, so it was rolled back. ` +
      'Most likely it queried the pool while its transaction was open: use tx',
  )
}

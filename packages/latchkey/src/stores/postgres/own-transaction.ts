/** The end of a transaction that we opened: as its work wishes, unless the work has ended it or stands in everybody's way. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { HandlerEnd, TransactionEnd } from '../../ports/store.ts'
import type { PoolShare } from './pool-share.ts'
import { isConflict } from './sqlstate.ts'
import type { OpenTransaction } from './transaction.ts'
import type { CommandWatch } from './watch-commands.ts'

export interface OwnTransaction {
  readonly opened: OpenTransaction
  readonly share: PoolShare
  readonly watch: CommandWatch | undefined
  /** What goes with the COMMIT; whether it was found to be another transaction than the one that reserved. */
  readonly known: { readonly atEnd?: string; readonly hasVanished?: true }
  /** Takes `tx` from the handler. */
  readonly close: (error: LatchkeyError) => void
  /** For the error that names the mistake. Absent: a phase. */
  readonly operation: string | undefined
}

type Work = () => Promise<'commit' | 'rollback'>
type Wish = 'commit' | 'rollback' | 'misused'

export async function endOwnTransaction(own: OwnTransaction, schema: string, work: Work): Promise<TransactionEnd> {
  const { opened, watch, known, close, operation } = own
  try {
    let wish: Wish
    try {
      wish = await unlessIdle(own, work)
    } catch (cause) {
      close(over())
      watch?.endsNow()
      await opened.rollback()
      const how = handlerEnd({ watch, ...known })
      if (how !== undefined) return { kind: 'ended-by-handler', how, error: cause }
      if (isConflict(cause, schema)) return { kind: 'conflict', cause }
      throw cause
    }
    const misuse = wish === 'misused' ? usedThePool(operation) : undefined
    close(misuse ?? over())
    watch?.endsNow()
    if (wish === 'commit') {
      const end = await opened.commit(known.atEnd)
      const how = end.kind === 'conflict' ? handlerEnd({ watch, ...known }) : undefined
      return how === undefined ? end : { kind: 'ended-by-handler', how }
    }
    await opened.rollback()
    if (misuse !== undefined) return { kind: 'misused', cause: misuse }
    const how = handlerEnd({ watch, ...known })
    return how === undefined ? { kind: 'rolled-back' } : { kind: 'ended-by-handler', how }
  } finally {
    watch?.stop()
  }
}

interface Ended {
  readonly watch: CommandWatch | undefined
  readonly hasVanished?: true
}

/** Undefined: the handler did not end it. */
export function handlerEnd({ watch, hasVanished }: Ended): HandlerEnd | undefined {
  return watch?.ended() ?? (hasVanished === true ? 'unseen' : undefined)
}

/** What the work wishes, or `misused` when it left the transaction idle while others waited for the pool: then it may still run. */
function unlessIdle({ opened, share, watch }: OwnTransaction, work: Work): Promise<Wish> {
  // Whether another driver's connection is idle cannot be seen.
  if (watch === undefined) return work()
  const { client } = opened
  let answers = watch.answers()
  const isIdle = () => {
    const isUnchanged = answers === watch.answers()
    answers = watch.answers()
    return isUnchanged && client.readyForQuery === true && watch.ended() === undefined
  }
  return new Promise<Wish>((resolve, reject) => {
    const stop = share.watch({ isIdle, onIdle: () => resolve('misused') })
    work().then(
      wish => {
        stop()
        resolve(wish)
      },
      (error: unknown) => {
        stop()
        reject(error)
      },
    )
  })
}

function over(): LatchkeyError {
  return new LatchkeyError('not-a-transaction', 'this transaction has ended: its tx is good only until the handler returns')
}

function usedThePool(operation: string | undefined): LatchkeyError {
  const who = operation === undefined ? 'a phase' : `the handler of ${operation}`
  return new LatchkeyError(
    'transaction-rolled-back',
    `${who} left its transaction idle for 5 s while others waited for a connection, and it was rolled back. ` +
      'Most likely it queried the pool while its transaction was open: use tx',
  )
}

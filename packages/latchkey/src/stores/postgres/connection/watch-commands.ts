/**
 * What the server reports about the commands on one connection while a handler has it. It covers every way to send a command: a
 * cursor, a library that uses the client itself, a text that cannot be parsed.
 */
import type { HandlerEnd } from '../../../ports/store.ts'
import type { PgClient, PgMessage } from '../driver.ts'

export interface CommandWatch {
  /** The server rejects everything in this transaction, because a statement failed. */
  isAborted(): boolean
  /** How many messages were answered. */
  answers(): number
  /** How the handler ended the transaction; undefined: it did not. */
  ended(): Exclude<HandlerEnd, 'unseen'> | undefined
  /** From here on the transaction is ended by us. */
  endsNow(): void
  stop(): void
}

/** Undefined: a client of another driver, which does not show it. */
export function watchCommands(client: Pick<PgClient, 'connection'>): CommandWatch | undefined {
  const wire = client.connection
  if (typeof wire?.on !== 'function') return undefined
  let hasCommitted = false
  let hasLeft = false
  let status: string | undefined
  let answers = 0
  const onCommand = ({ text }: PgMessage) => {
    // Only COMMIT itself has this text: a released savepoint is RELEASE, and a COMMIT after an error is answered with ROLLBACK.
    if (text?.startsWith('COMMIT') === true) hasCommitted = true
  }
  const onReady = (message: PgMessage) => {
    status = message.status
    answers += 1
    if (status === 'I') hasLeft = true
  }
  wire.on('commandComplete', onCommand)
  wire.on('readyForQuery', onReady)
  return {
    isAborted: () => status === 'E',
    answers: () => answers,
    ended() {
      // Also where it rolled ours back and committed another one after: something of the handler's is committed.
      if (hasCommitted) return 'committed'
      return hasLeft ? 'rolled-back' : undefined
    },
    endsNow: () => void wire.removeListener('readyForQuery', onReady),
    stop() {
      wire.removeListener('readyForQuery', onReady)
      wire.removeListener('commandComplete', onCommand)
    },
  }
}

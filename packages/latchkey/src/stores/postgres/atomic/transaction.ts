/** An open transaction, ours or the caller's: what is reserved and recorded in it, and how its handler ended it. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { AtomicRequest, HandlerEnd, Recorded, Reservation } from '../../../ports/store.ts'
import { isFailedTransaction } from '../connection/errors.ts'
import type { Fields } from '../connection/prepared.ts'
import type { Together } from '../connection/transaction.ts'
import type { CommandWatch } from '../connection/watch-commands.ts'
import type { AtomicCalls, AtomicRuns, Recording } from './reserve-and-record.ts'

export interface AtomicTransaction {
  readonly calls: AtomicCalls
  readonly runs: AtomicRuns
  readonly isOurs: boolean
  /** Undefined: the driver does not show its commands, or nothing is reserved in a transaction of the caller's. */
  watch: CommandWatch | undefined
  /** When it began, by the server, once something is reserved in it. */
  began?: string
  /** The lock that was asked for with its BEGIN. */
  first?: { readonly request: AtomicRequest; readonly lock: Fields | undefined } | undefined
  /** What was found without a transaction: nothing else can be asked of it. */
  found?: Reservation
  /** Sent with the COMMIT. */
  atEnd?: Together
  /** It has ended, and the watch has not seen how. */
  hasVanished?: true
}

/** Undefined: the handler did not end it. */
export function handlerEnd({ watch, hasVanished }: AtomicTransaction): HandlerEnd | undefined {
  return watch?.ended() ?? (hasVanished === true ? 'unseen' : undefined)
}

export async function reserveIn(transaction: AtomicTransaction, request: AtomicRequest): Promise<Reservation> {
  const { calls, runs, first, found } = transaction
  if (found !== undefined) return found
  const lock = first?.request === request ? first.lock : undefined
  transaction.first = undefined
  const { reservation, began } = await calls.reserve(runs, request, lock)
  transaction.began = began
  return reservation
}

type Recordable = Omit<Recording, 'began'>

export async function recordIn(transaction: AtomicTransaction, recordable: Recordable): Promise<Recorded> {
  const { calls, runs, watch } = transaction
  const recording = recordingOf(transaction, recordable)
  const unusable = whyUnusable(watch)
  if (unusable !== undefined) return unusable
  const recorded = await calls.record(runs, recording).catch((error: unknown): Recorded => {
    if (isFailedTransaction(error)) return 'aborted'
    throw error
  })
  if (recorded !== 'taken' || watch !== undefined || (await calls.isSame(runs, recording))) return recorded
  transaction.hasVanished = true
  return 'ended'
}

/** Together with the COMMIT, where a refusal can be distinguished from a transaction that its handler ended. */
export async function recordAtEnd(transaction: AtomicTransaction, recordable: Recordable): Promise<Recorded> {
  const { calls, watch } = transaction
  if (watch === undefined) return recordIn(transaction, recordable)
  const unusable = whyUnusable(watch)
  if (unusable !== undefined) return unusable
  const atEnd = calls.recordLast(recordingOf(transaction, recordable))
  if (atEnd === undefined) return recordIn(transaction, recordable)
  transaction.atEnd = atEnd
  return 'recorded'
}

function whyUnusable(watch: CommandWatch | undefined): 'aborted' | 'ended' | undefined {
  if (watch?.ended() !== undefined) return 'ended'
  return watch?.isAborted() === true ? 'aborted' : undefined
}

function recordingOf({ began }: AtomicTransaction, recordable: Recordable): Recording {
  if (began === undefined) throw new LatchkeyError('invariant', 'an outcome was recorded without a reservation')
  return { ...recordable, began }
}

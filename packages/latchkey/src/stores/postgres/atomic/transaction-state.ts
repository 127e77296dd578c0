/** What is known of an open transaction, ours or adopted, and what is reserved and recorded in it. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { AtomicRequest, HandlerEnd, Recorded, Reservation } from '../../../ports/store.ts'
import type { AtomicCalls, AtomicRuns, Recording } from './reserve-and-record.ts'
import { isFailedTransaction } from '../connection/errors.ts'
import type { CommandWatch } from '../connection/watch-commands.ts'

export interface KnownTransaction {
  readonly calls: AtomicCalls
  readonly runs: AtomicRuns
  readonly isOurs: boolean
  watch: CommandWatch | undefined
  /** When it began, by the server, once something is reserved in it. */
  began?: string
  /** What the beginning has found. */
  first?: { readonly request: AtomicRequest; readonly lock: unknown }
  /** What was found in a transaction that is over: nothing else can be asked of it. */
  looked?: Reservation
  /** What goes with the COMMIT. */
  atEnd?: string
  /** It was ended by somebody, and the watch has not seen how. */
  hasVanished?: true
}

/** Undefined: the handler did not end it. */
export function handlerEnd({ watch, hasVanished }: KnownTransaction): HandlerEnd | undefined {
  return watch?.ended() ?? (hasVanished === true ? 'unseen' : undefined)
}

export async function reserveIn(known: KnownTransaction, request: AtomicRequest): Promise<Reservation> {
  if (known.looked !== undefined) return known.looked
  const lock = known.first?.request === request ? known.first.lock : undefined
  delete known.first
  const { reservation, began } = await known.calls.reserve(known.runs, request, lock)
  known.began = began
  return reservation
}

export async function recordIn(known: KnownTransaction, parts: Omit<Recording, 'began'>): Promise<Recorded> {
  const { calls, runs, watch } = known
  const recording = recordingOf(known, parts)
  const spoilt = spoiltBy(watch)
  if (spoilt !== undefined) return spoilt
  const recorded = await calls.record(runs, recording).catch((error: unknown): Recorded => {
    if (isFailedTransaction(error)) return 'aborted'
    throw error
  })
  if (recorded !== 'taken' || watch !== undefined || (await calls.isSame(runs, recording))) return recorded
  known.hasVanished = true
  return 'ended'
}

/** Together with the COMMIT, where its refusal can be told from the end of the transaction by its handler. */
export function recordAtEnd(known: KnownTransaction, parts: Omit<Recording, 'began'>): Recorded | Promise<Recorded> {
  if (known.watch === undefined) return recordIn(known, parts)
  const spoilt = spoiltBy(known.watch)
  if (spoilt !== undefined) return spoilt
  const text = known.calls.recordText(recordingOf(known, parts))
  if (text === undefined) return recordIn(known, parts)
  known.atEnd = text
  return 'recorded'
}

function spoiltBy(watch: CommandWatch | undefined): 'aborted' | 'ended' | undefined {
  if (watch?.ended() !== undefined) return 'ended'
  return watch?.isAborted() === true ? 'aborted' : undefined
}

function recordingOf({ began }: KnownTransaction, parts: Omit<Recording, 'began'>): Recording {
  if (began === undefined) throw new LatchkeyError('invariant', 'an outcome was recorded without a reservation')
  return { ...parts, began }
}

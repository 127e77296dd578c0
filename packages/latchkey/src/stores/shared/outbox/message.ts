/** What the outboxes share: the lane of a message, what can be stored, and how its headers are written. */
import { createHash } from 'node:crypto'
import { checkMessage, type FailedDelivery, type NewMessage } from '../../../ports/outbox.ts'

export const historyMax = 20
export const lagCountMax = 100_000
export const parkedListMax = 1_000
/** How many relays in a row die on a lane before its next messages are tried one by one: one may die for any reason. */
export const crashesUntilSuspect = 2
/** How many messages that stand in line are woken when the one before them is gone; the next ones wake the next. */
export const wakeMax = 100
/** A suspect that killed its relay is left alone for 1, 2, 4 … seconds, at most this long, so that others get their turn. */
export const probeDelayMaxMs = 60_000

/** An aggregate lives in one lane, so that one relay at a time has all of it. */
export function laneOf({ aggregate, dedupId }: NewMessage, lanes: number): number {
  const hash = createHash('sha256').update(aggregate === undefined ? `d${dedupId}` : `a${aggregate}`)
  return hash.digest().readUInt32BE(0) % lanes
}

export interface StorableMessage extends NewMessage {
  readonly lane: number
  readonly headerText: string
}

export function storableMessage(message: NewMessage, lanes: number): StorableMessage {
  const headerText = JSON.stringify(message.headers)
  checkMessage(message, headerText)
  return { ...message, lane: laneOf(message, lanes), headerText }
}

/** Written by `storableMessage` only. */
export function headersFrom(text: unknown): Readonly<Record<string, string>> {
  return JSON.parse(String(text)) as Record<string, string>
}

/** Written by the stores' settle statements only. */
export function historyFrom(text: unknown): readonly FailedDelivery[] {
  return JSON.parse(String(text)) as readonly FailedDelivery[]
}

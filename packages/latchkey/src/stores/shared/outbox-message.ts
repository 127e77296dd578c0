/** What the outboxes share: the lane of a message, what can be stored, and how its headers are written. */
import { createHash } from 'node:crypto'
import { misconfigured } from '../../ports/errors.ts'
import type { FailedDelivery, NewMessage } from '../../ports/outbox.ts'

const nameLengthMax = 255
/** A batch of 200 must fit in memory easily. What is larger belongs somewhere the message points to. */
const payloadBytesMax = 64 * 1024
const headerBytesMax = 8 * 1024

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
  const { topic, aggregate, dedupId, payload, headers } = message
  checkName('topic', topic)
  checkName('dedupId', dedupId)
  if (aggregate !== undefined) checkName('aggregate', aggregate)
  if (payload.byteLength > payloadBytesMax) {
    throw misconfigured(`the payload of a message to ${topic} has ${payload.byteLength} bytes, over ${payloadBytesMax}`)
  }
  const headerText = JSON.stringify(headers)
  if (Buffer.byteLength(headerText) > headerBytesMax) {
    throw misconfigured(`the headers of a message to ${topic} are larger than ${headerBytesMax} bytes`)
  }
  return { ...message, lane: laneOf(message, lanes), headerText }
}

function checkName(what: string, value: string): void {
  const sound = typeof value === 'string' && value !== '' && value.length <= nameLengthMax
  // No store keeps U+0000 or half a surrogate pair as it is.
  if (sound && !/[\0\p{Surrogate}]/u.test(value)) return
  const shown = JSON.stringify(value)?.slice(0, 40)
  throw misconfigured(
    `the ${what} of an outbox message must be 1 to ${nameLengthMax} characters of valid Unicode without U+0000 (got ${shown})`,
  )
}

/** Written by `storableMessage` only. */
export function headersFrom(text: unknown): Readonly<Record<string, string>> {
  return JSON.parse(String(text)) as Record<string, string>
}

/** Written by the stores' settle statements only. */
export function historyFrom(text: unknown): readonly FailedDelivery[] {
  return JSON.parse(String(text)) as readonly FailedDelivery[]
}

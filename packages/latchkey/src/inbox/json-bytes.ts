/**
 * The bytes that the data of a JSON message were parsed from, where a consumer or a redrive hands it in. They are what counts and what is parked: to write
 * the data down again costs time, and is impossible for those that are nested deep enough.
 */
import type { InboxMessage } from './message.ts'

/** Beside the message and not in it: a copy with other data must not bring these bytes along. */
const known = new WeakMap<InboxMessage, Uint8Array>()

export function withJsonBytes(message: InboxMessage, bytes: Uint8Array): InboxMessage {
  known.set(message, bytes)
  return message
}

export function jsonBytesOf(message: InboxMessage): Uint8Array | undefined {
  return known.get(message)
}

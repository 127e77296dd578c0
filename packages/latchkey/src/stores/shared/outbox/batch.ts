/** How a batch is put together, and what it leaves behind. */
import type { Batch, DeliveryEnd, FailedDelivery, Message } from '../../../ports/outbox.ts'
import { historyMax, probeDelayMaxMs } from './message.ts'

/** Half for messages that failed before, so that many of them do not hold up new ones. */
export function retriesMax(limit: number): number {
  return Math.ceil(limit / 2)
}

export interface FreshMessage {
  readonly message: Message
  /** An earlier message of its aggregate is aside: this one is set aside behind it. */
  readonly blocked: boolean
}

export interface BatchParts {
  readonly limit: number
  /** From aside; at most `retriesMax`. */
  readonly retries: readonly Message[]
  /** After the cursor; as many as the retries leave room for. */
  readonly fresh: readonly FreshMessage[]
}

export function bulkBatch({ limit, retries, fresh }: BatchParts): Batch {
  const sendable = fresh.filter(({ blocked }) => !blocked)
  const blocked = fresh.filter(one => one.blocked)
  return {
    messages: [...retries, ...sendable.map(({ message }) => message)],
    behind: blocked.map(({ message }) => message.position),
    through: fresh.at(-1)?.message.position,
    more: fresh.length === limit - retries.length || retries.length === retriesMax(limit),
  }
}

/** A suspect is delivered alone. */
export function suspectBatch(suspect: Message): Batch {
  return { messages: [suspect], behind: [], through: undefined, more: true }
}

/** A suspect that killed its relay is left alone for twice as long every time, so that others get their turn. */
export function probeDelayMs(crashes: number): number {
  return Math.min(1_000 * 2 ** Math.min(crashes, 20), probeDelayMaxMs)
}

/** Positions that wait behind others when the batch is settled: blocked ones, and messages of the batch without an end. */
export function waitingPositions({ messages, behind }: Batch, ends: readonly DeliveryEnd[]): readonly string[] {
  const ended = new Set(ends.map(end => end.position))
  const undelivered = messages.map(({ position }) => position).filter(position => !ended.has(position))
  return [...behind, ...undelivered]
}

/** The last `historyMax` failures, oldest first. */
export function withFailure(history: readonly FailedDelivery[], failure: FailedDelivery): readonly FailedDelivery[] {
  return [...history, failure].slice(-historyMax)
}

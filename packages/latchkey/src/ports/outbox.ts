/**
 * The transactional outbox: messages that exist exactly when the transaction that wrote them committed.
 *
 * lane       a slice of the messages, by the hash of the aggregate; one relay at a time works on it, under a lease with a fence
 * cursor     how far a lane has been read; moved once per batch
 * aggregate  messages of one aggregate are delivered in the order of their appends
 * aside      a message that could not be delivered, or waits behind one that could not: stored apart, so that the cursor can move
 * parked     a message aside that failed too often: no automatic work on it until an operator redrives it
 * suspect    a message aside that relays were delivering when they died; delivered alone, and counted before it is tried
 *
 * The table is append-only and read below the snapshot horizon, so that a message whose transaction began first and
 * committed last is never skipped.
 *
 * Order. Within an aggregate, first deliveries follow the order of the appends if the producers take turns: each holds
 * something of the aggregate's (a row it updates, a lock) from before its append until its commit. Appends that race each
 * other are delivered in some order, each after the earlier ones of its own transaction. A redelivery may repeat a stretch
 * of messages, never reorder it. Between aggregates nothing is promised.
 */
import { misconfigured } from './errors.ts'
import { isSealedMessage, sealedExtraBytesMax } from './sealed-marks.ts'
import type { Act } from './store.ts'

export interface NewMessage {
  readonly topic: string
  /** Messages of one aggregate are delivered in order. Absent: no order is promised. */
  readonly aggregate: string | undefined
  /** The id by which a consumer recognises a copy. */
  readonly dedupId: string
  readonly payload: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** Whose it is, so that it is erased with its tenant. Absent: it is not known. Not read back. */
  readonly scope?: string | undefined
}

export interface Message extends NewMessage {
  /** Opaque; names the message for as long as it is stored. */
  readonly position: string
  /** By the hash of the aggregate, or of the dedup id where there is none: an aggregate lives in one lane. */
  readonly lane: number
  /** How often its delivery failed before. A delivery that was not acknowledged because the relay died is not in it. */
  readonly attempts: number
  /** How often a relay died while it delivered this message alone. */
  readonly crashes: number
  readonly createdAtMs: number
  /** Why its payload cannot be read: it is never delivered, and its payload and headers are empty. Absent: it can. */
  readonly unreadable?: string
}

export interface LaneLease {
  readonly lane: number
  readonly fence: number
  readonly leaseId: string
}

/** `lease-lost`: fence or leaseId no longer match. Nothing was written. */
export type LaneResult = 'written' | 'lease-lost'

/** What to deliver now, and what is settled with it. Messages of one aggregate stand in their order. */
export interface Batch {
  readonly messages: readonly Message[]
  /** Positions read on the way whose aggregate is blocked: set aside when the batch is settled. */
  readonly behind: readonly string[]
  /** Where the cursor goes when the batch is settled. Absent: only messages from aside. */
  readonly through: string | undefined
  /** There may be more to do at once. */
  readonly more: boolean
}

/** How one delivery ended. */
export type DeliveryEnd =
  /** `downstreamId`: what the downstream calls it; recorded in the commit by which the message counts as done. */
  | { readonly kind: 'delivered'; readonly position: string; readonly downstreamId: string | undefined }
  /**
   * Set aside, due again later, or parked. `block`: the messages of its aggregate wait behind it; `skip`: they are delivered
   * without it.
   */
  | {
      readonly kind: 'failed'
      readonly position: string
      readonly error: string
      readonly next: { readonly kind: 'retry'; readonly dueInMs: number } | { readonly kind: 'park' }
      readonly aggregate: 'block' | 'skip'
    }

export interface ParkedMessage extends Message {
  readonly cause: string
  /** The last 20 failures, oldest first. */
  readonly history: readonly FailedDelivery[]
  readonly parkedAtMs: number
}

export interface FailedDelivery {
  readonly atMs: number
  readonly error: string
}

export interface Redrive extends Act {
  readonly atMs: number
}

export interface OutboxLag {
  /** Committed and neither delivered nor parked. Counted up to 100,000. */
  readonly waiting: number
  /**
   * Of those, how many an older transaction that is still open holds back; on PostgreSQL one in any database of the server.
   * Stays above 0: a transaction was never ended. Always 0 where there is one writer.
   */
  readonly heldBack: number
  /** Age of the oldest that waits; 0: none does. */
  readonly oldestMs: number
  readonly parked: number
}

export interface Outbox<Tx> {
  /** How many lanes the messages are spread over. Fixed by the schema. */
  readonly lanes: number
  /**
   * In the caller's transaction, which the transactor has opened or adopted. Rejects with `misconfigured` a message that no store could
   * hold: topic, aggregate and dedup id are 1 to 255 characters without U+0000; payload and headers are bounded.
   */
  append(tx: Tx, message: NewMessage): Promise<void>

  /** A lane that has something to do and whose lease is free or dead, fence + 1, longest unserved first. */
  leaseLane(options: { readonly leaseId: string; readonly leaseMs: number }): Promise<LaneLease | undefined>
  renewLane(lease: LaneLease, leaseMs: number): Promise<LaneResult>
  releaseLane(lease: LaneLease): Promise<LaneResult>
  /**
   * Messages from aside that are due, and those after the cursor and below the horizon; at most `limit`, payloads and all.
   * After two relays in a row died on the lane, its next `limit` messages become suspects, and each is a batch of its own.
   */
  next(lease: LaneLease, options: { readonly limit: number }): Promise<Batch | 'lease-lost'>
  /**
   * What `next` would read after `after`, the `through` of a batch that is being settled right now as delivered to the last
   * message: so that the relay need not wait for the commit before it reads on. Nothing of it may be delivered before that
   * settlement is written. Undefined: not known yet, `next` returns it. Absent where waiting for a commit costs nothing.
   */
  ahead?(lease: LaneLease, options: { readonly limit: number; readonly after: string }): Promise<Batch | undefined>
  /**
   * The whole batch in one commit: the cursor moves, what failed is set aside, what was delivered is done. A message of the
   * batch without an end stays in line: it is set aside, due when nothing of its aggregate stands before it. Renews the
   * lease, or gives it back.
   */
  settle(lease: LaneLease, settlement: Settlement): Promise<LaneResult>

  /** By position. `after`: the position of the last one of the page before. At most 1,000. */
  parked(options: { readonly limit: number; readonly after?: string }): Promise<readonly ParkedMessage[]>
  /** Parked → due now, attempts and crashes 0; in place, with its history; audited in the same commit. */
  redrive(position: string, act: Act): Promise<{ readonly kind: 'redriven' } | { readonly kind: 'not-found' }>
  /** Who redrove it; stored for good. */
  redrives(position: string): Promise<readonly Redrive[]>
  /** What the downstream called it; absent: not delivered, or not reported, or pruned. */
  downstreamId(position: string): Promise<string | undefined>
  /** Deletes delivered messages older than `keepMs`, with their downstream ids; returns how many. */
  prune(options: { readonly limit: number; readonly keepMs: number }): Promise<number>
  lag(): Promise<OutboxLag>
}

export interface Settlement {
  readonly batch: Batch
  readonly ends: readonly DeliveryEnd[]
  readonly then: { readonly kind: 'keep'; readonly leaseMs: number } | { readonly kind: 'release' }
}

/** Nothing of it failed, was left out or stands behind another: only the cursor has to move. */
export function isAllDelivered({ messages, behind }: Batch, ends: readonly DeliveryEnd[]): boolean {
  return behind.length === 0 && ends.length === messages.length && ends.every(end => end.kind === 'delivered')
}

const nameLengthMax = 255
/** A batch of 200 must fit in memory easily. What is larger belongs somewhere the message points to. */
const payloadBytesMax = 64 * 1024
const headerBytesMax = 8 * 1024

/** What a message may be, on every store. `headerText`: the headers as they are stored. */
export function checkMessage(message: NewMessage, headerText: string = JSON.stringify(message.headers)): void {
  const { topic, aggregate, dedupId, payload } = message
  checkName('topic', topic)
  checkName('dedupId', dedupId)
  if (aggregate !== undefined) checkName('aggregate', aggregate)
  const bytesMax = payloadBytesMax + (isSealedMessage(message) ? sealedExtraBytesMax : 0)
  if (payload.byteLength > bytesMax)
    throw misconfigured(`the payload of a message to ${topic} has ${payload.byteLength} bytes, over ${payloadBytesMax}`)
  if (Buffer.byteLength(headerText) > headerBytesMax)
    throw misconfigured(`the headers of a message to ${topic} are larger than ${headerBytesMax} bytes`)
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

/**
 * Messages that a consumer has set aside, because none of them can run before an operator acts.
 *
 * A row is a copy of the message. It is stored before the message is acknowledged to the broker, so that a message is always in one place or the
 * other. An operator marks it to be run again (`redrive`); the process that consumes takes marked messages, one at a time and under a lease. A row goes
 * when its message is done, or when an operator discards it. Nothing else deletes it, whatever its age.
 */
import type { Act, OwnerResult } from '../store.ts'

/**
 * `missing-key`: it has no id. `mismatch`: its id was used before, for another message. `attempts`: it was tried as often as it may be. `unknown`: it may
 * have taken effect, and its consumer does not wait; it is taken by itself once its row is settled. `row-parked`: its row waits for an operator.
 * `input-refused`: no input, or no fingerprint, could be made of it.
 */
export type ParkedCause = 'missing-key' | 'mismatch' | 'attempts' | 'unknown' | 'row-parked' | 'input-refused'

/** What stays readable where the rest is encrypted. */
export interface ParkedInboxHead {
  /** A uuid: a hash of what makes it this message. Parked again, it is the same row. */
  readonly id: string
  readonly consumer: string
  readonly operation: string
  /** Where its id is unique: a topic, a stream, a queue. */
  readonly source: string
  /** Undefined: it came without one. */
  readonly messageId: string | undefined
  readonly type: string | undefined
  readonly contentType: string | undefined
  /** Where the broker had it, for people. */
  readonly position: string | undefined
  readonly cause: ParkedCause
  /** The row of its key. Undefined: it has no key. */
  readonly rowId: string | undefined
  /** How often it had been tried. A redrive may try it as often again. */
  readonly attempts: number
}

export interface NewParkedInboxMessage extends ParkedInboxHead {
  /** Whether it was handed in as JSON or as bytes: it is handed to its handler again in the same way. */
  readonly form: 'json' | 'bytes'
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Uint8Array
}

interface ParkedInboxFacts {
  /** How often it was parked. */
  readonly times: number
  /** For the first time, and for the last. */
  readonly firstParkedAtMs: number
  readonly parkedAtMs: number
  /** Undefined: it waits for an operator. */
  readonly redrive: InboxRedrive | undefined
}

export interface InboxRedrive {
  /** The id to run it under. Undefined: its own. */
  readonly as: string | undefined
  /** Zero or less: it may be taken. */
  readonly dueInMs: number
}

/** Of a listing: without headers and payload. */
export interface ListedInboxMessage extends ParkedInboxHead, ParkedInboxFacts {}

export interface ParkedInboxMessage extends NewParkedInboxMessage, ParkedInboxFacts {
  /** Why its headers and its payload cannot be read, and are empty here. */
  readonly unreadable?: string
}

export interface ParkedInboxListing {
  readonly consumer?: string
  readonly cause?: ParkedCause
  /** At most 1,000. */
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string
}

export interface ParkedInboxPage {
  /** In the order in which they were first parked. */
  readonly messages: readonly ListedInboxMessage[]
  readonly next: string | undefined
}

export interface InboxAct extends Act {
  readonly act: 'redrive' | 'discard'
  readonly atMs: number
  readonly detail: string
}

export interface InboxInspection {
  /** Undefined: it is done, or was discarded. What operators did with it stays. */
  readonly message: ParkedInboxMessage | undefined
  readonly audit: readonly InboxAct[]
}

/** `needs-id`: it has none, and none was given. `taken`: a consumer is running it now. Nothing was changed then. */
export interface RedriveResult {
  readonly kind: 'redriven' | 'not-found' | 'needs-id' | 'taken'
}
export interface DiscardResult {
  readonly kind: 'discarded' | 'not-found' | 'taken'
}

/** A message in the hands of one process; `run` rises with every take and fences it. */
export interface TakenInboxMessage {
  readonly run: number
  readonly message: ParkedInboxMessage
}

/** How a taken message ended. */
export type RedriveEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly dueInMs: number }
  | { readonly kind: 'parked'; readonly cause: ParkedCause; readonly attempts: number }

export interface ParkedInbox {
  /** Durable when it resolves. Of a message that is there already: one more time, with the new cause and attempts. A mark to run it again stays. */
  park(message: NewParkedInboxMessage): Promise<void>
  list(listing: ParkedInboxListing): Promise<ParkedInboxPage>
  inspect(id: string): Promise<InboxInspection>
  /** Marks it to be run again, now, under its own id or another one. The act is committed with it, and stays. */
  redrive(id: string, act: Act, as?: string): Promise<RedriveResult>
  /** Deletes it. The act is committed with it, and stays. */
  discard(id: string, act: Act): Promise<DiscardResult>
  /**
   * The oldest message of this consumer and operation that is marked and due, or was parked as `unknown` and has a row that is settled. No other process
   * gets it before its lease ends. Undefined: there is none.
   */
  take(options: {
    readonly consumer: string
    readonly operation: string
    readonly leaseMs: number
  }): Promise<TakenInboxMessage | undefined>
  /** Moves the lease. `claim-lost`: another process has taken it since, or it is gone. */
  renew(taken: TakenInboxMessage, leaseMs: number): Promise<OwnerResult>
  /** Ends the lease: the row is deleted, waits until it is due, or waits for an operator again. `claim-lost`: as above, and nothing is changed. */
  settle(taken: TakenInboxMessage, end: RedriveEnd): Promise<OwnerResult>
  /** How many wait for an operator, counted up to 100,000. */
  waiting(): Promise<number>
}

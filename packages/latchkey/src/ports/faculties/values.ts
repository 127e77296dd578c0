/**
 * Every value of the application's that a store holds, page by page, and its replacement if it is unchanged: so that what is encrypted under one key
 * can be encrypted under another while requests are served.
 */
import type { NewMessage } from '../outbox.ts'
import type { Outcome } from '../outcome.ts'

/** The answer of a row, or evidence that could become one. */
export interface StoredOutcome {
  readonly kind: 'outcome'
  /** Opaque; names the value in the store. */
  readonly at: string
  /** The row's. */
  readonly id: string
  readonly outcome: Outcome
  /** As it stands in the store, where that is how it is compared. */
  readonly raw?: Uint8Array
}

export interface StoredText {
  readonly kind: 'text'
  readonly at: string
  readonly column: 'description' | 'input' | 'step' | 'downstream-id'
  /** The row's; of a downstream id, the position of its message. */
  readonly id: string
  readonly text: string
}

/** The order of messages is decided by aggregate and lane, which are not replaced. */
export interface StoredMessage {
  readonly kind: 'message'
  readonly at: string
  readonly message: NewMessage
}

/** The name that its source gave to evidence, or to a signed message: by it they are recognised. */
export interface StoredRef {
  readonly kind: 'ref'
  readonly at: string
  readonly source: string
  readonly ref: string
}

/** What a consumer has parked. */
export interface StoredParked {
  readonly kind: 'parked'
  readonly at: string
  /** Of the parked message. */
  readonly id: string
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Uint8Array
}

/** A name under which a row is found, plain or hashed, and then with its text sealed. */
export interface StoredReferenceValue {
  readonly kind: 'reference'
  readonly at: string
  /** The row's. */
  readonly id: string
  readonly index: string
  readonly sealed: string | undefined
}

export type StoredValue = StoredOutcome | StoredText | StoredMessage | StoredRef | StoredParked | StoredReferenceValue

export interface ValuePage {
  readonly values: readonly StoredValue[]
  /** For the next page; undefined: this was the last one. A page may be empty before the end. */
  readonly next: string | undefined
}

export interface Values {
  /**
   * At most `limit` rows of one table. What is written while the pages are read may be missed: it is written by the current key. What cannot be
   * read is left out.
   */
  page(options: { readonly limit: number; readonly after?: string | undefined }): Promise<ValuePage>
  /** One compare-and-set with the old bytes. `changed`: it was written or deleted since it was read. */
  replace(before: StoredValue, after: StoredValue): Promise<'replaced' | 'changed'>
}

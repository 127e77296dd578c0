/** One error class with a code; test it with `isLatchkeyError`, which also works across two copies of the package. */
import { types } from 'node:util'

export type ErrorCode =
  /** A wrong option, at construction. */
  | 'misconfigured'
  /** Something that is not an open transaction was handed in where one is required. */
  | 'not-a-transaction'
  /** The store did not answer in time, or failed. Nothing ran and nothing will, unless `maybeAccepted`. */
  | 'store-unavailable'
  /** More calls wait in this process than it may queue, or one waited too long. It was never sent, so nothing ran. */
  | 'overloaded'
  /** Over a limit of its scope: nothing was reserved. `retryAfterMs` says when there is room again. */
  | 'limit-exceeded'
  /** A handler misused its transaction, which was rolled back: nothing happened. The cause names the cure. */
  | 'transaction-rolled-back'
  /** The store's tables are missing or older than this version. */
  | 'store-not-migrated'
  /** A newer release has changed the store's tables so that this one cannot share them any more. */
  | 'store-newer'
  /** The store's schema holds tables of these names that Latchkey did not make. */
  | 'store-foreign'
  /** The role lacks a right on the store's tables; the message has the GRANT. */
  | 'store-rights'
  /** The store can be read and not written: a standby, or read-only by a setting. */
  | 'store-read-only'
  /** The server is older than this store needs. */
  | 'store-too-old'
  /** A setting of the server lets it drop what it was given; the message names it. */
  | 'store-unsafe'
  /** The cache of `tieredStore` did not confirm that it gives a row up, so the row was left as it is. */
  | 'cache-unavailable'
  /** The handler reports that no effect happened. */
  | 'not-executed'
  /** The handler reports, or Latchkey found, that an effect may have happened. */
  | 'outcome-unknown'
  /** Another caller is executing this identity. */
  | 'in-progress'
  /** Same identity, other input. */
  | 'key-reused'
  /** The input has too many bytes or is nested too deep; the message names the limit. */
  | 'input-too-large'
  /** The key is missing, too long, or not of the operation's format. */
  | 'invalid-key'
  /** The operation limits the age of keys or requests, and this one is too late to be run as a new one. */
  | 'key-too-old'
  /** It was answered long ago: the answer is gone, and only the fact that it happened is stored. */
  | 'key-expired'
  /** The scope function threw or returned no usable scope. */
  | 'scope-unresolved'
  /** Finished, but the result was too large to store. */
  | 'response-not-stored'
  /** The row was written by a fingerprint version this process does not know. */
  | 'fingerprint-version'
  /** A newer version wrote the row, or it is damaged: nothing runs until an operator has inspected it. */
  | 'row-unreadable'
  /** An operator has to act on this row first. */
  | 'parked'
  /** The claim was taken over while the handler ran, and the winner has no outcome yet. */
  | 'claim-lost'
  /** A stored failure of an operation with `onFailure: 'store'`, replayed. */
  | 'stored-failure'
  /** Something that cannot happen did: a bug in Latchkey. */
  | 'invariant'

export interface ErrorDetails {
  cause?: unknown
  retryAfterMs?: number
  maybeAccepted?: boolean
  sent?: false | undefined
}

export class LatchkeyError extends Error {
  override readonly name: string = 'LatchkeyError'
  readonly code: ErrorCode
  readonly retryAfterMs: number | undefined
  /** `store-unavailable`: the request may be in the store all the same, and may be executed later. Retry with the same key. */
  readonly maybeAccepted: boolean
  /** Of a failed call to the store; `false`: it was never sent, so it has done nothing and will do nothing. */
  readonly sent: false | undefined
  /** Marks the class across two copies of the package, where instanceof fails. */
  readonly isLatchkeyError: true = true

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.retryAfterMs = details.retryAfterMs
    this.maybeAccepted = details.maybeAccepted ?? false
    this.sent = details.sent
  }
}

export function isLatchkeyError(error: unknown, code?: ErrorCode): error is LatchkeyError {
  if (typeof error !== 'object' || error === null || !('isLatchkeyError' in error)) return false
  return code === undefined || ('code' in error && error.code === code)
}

/** A call to the store that failed before it was sent: there is nothing to find, and nothing to undo. */
export function wasNeverSent(error: unknown): boolean {
  return isLatchkeyError(error) && (error.code === 'overloaded' || error.sent === false)
}

/** Throw it when it is proven that nothing happened outside: the key may be tried again at once. */
export function notExecuted(cause?: unknown): LatchkeyError {
  return new LatchkeyError('not-executed', `not executed: ${reasonOf(cause)}`, { cause })
}

/** Throw it when an effect may have happened: the key does not run again until evidence settles it. */
export function outcomeUnknown(cause?: unknown): LatchkeyError {
  return new LatchkeyError('outcome-unknown', `outcome unknown: ${reasonOf(cause)}`, { cause })
}

export function misconfigured(message: string): LatchkeyError {
  return new LatchkeyError('misconfigured', message)
}

/** How large an input may be: in bytes of JSON, or in levels of nesting. */
export interface InputLimit {
  readonly max: number
  readonly unit: 'bytes' | 'levels'
}

/** `what` begins the sentence: `orders.create: the input`. */
export function inputTooLarge(what: string, { max, unit }: InputLimit): LatchkeyError {
  const limit = unit === 'bytes' ? `has more than ${max} bytes of JSON` : `is nested deeper than ${max} levels`
  return new LatchkeyError('input-too-large', `${what} ${limit}: store a reference instead`)
}

function reasonOf(cause: unknown): string {
  if (cause instanceof Error) return cause.message
  return typeof cause === 'string' ? cause : 'reported by the handler'
}

/** What an error says, in one line. A connection that failed on every address of a host says it only in its parts. */
export function errorText(error: unknown): string {
  if (!isError(error)) return String(error)
  if (error.message !== '') return error.message
  const [first] = 'errors' in error && Array.isArray(error.errors) ? error.errors : []
  return isError(first) && first.message !== '' ? first.message : error.name
}

/** Also one of another realm: under Jest, the errors of Node itself are no instances of the `Error` that a module sees. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value)
}

/** For the default branch of a switch over a union: the compiler proves it is never reached. */
export function unreachable(value: never): never {
  throw new LatchkeyError('invariant', `unexpected value ${JSON.stringify(value)}: this is a bug in Latchkey`)
}

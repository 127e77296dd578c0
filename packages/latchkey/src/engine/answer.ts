/** What goes into one execution and what comes out of it: the engine's boundary with adapters and plain functions. */
import { type InputLimit, isLatchkeyError } from '../ports/errors.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { GrantedFrom, Identity, KeyRecord } from '../ports/store.ts'
import type { FingerprintPart } from './fingerprint/fingerprint.ts'

/** Built by `executeRequest` in request.ts. */
export interface ExecuteRequest {
  readonly identity: Identity
  /** The client's key, for the handler's context only; it is never stored or logged. */
  readonly key: string
  readonly fingerprint: Uint8Array
  /** While an HMAC key is rotated: the fingerprint under the previous one, made only for a row that the current one does not match. */
  readonly previousFingerprint?: (() => Uint8Array) | undefined
  /** Older than the operation accepts: answered from its row, if there is one, and never begun. */
  readonly tooOld?: boolean
  /** The caller waits for a concurrent duplicate and asks again: it was counted the first time. */
  readonly asksAgain?: boolean
  /** Called when a row is granted to this request, with what it was before. For the limits of a scope. */
  readonly onGrant?: ((from: GrantedFrom) => void) | undefined
  /** Called right before the handler or the definition runs: it is never called twice for one caller. */
  readonly onStart?: (() => void) | undefined
  /** Called after each renewal of the lease, while the handler runs. It does not throw. Only guarded work has a lease that is renewed. */
  readonly onBeat?: (() => void) | undefined
  /** For operators, at most 80 characters. */
  readonly description: string | undefined
  /** May this caller have what the row holds? Asked before anything of a row is returned or run. Absent: yes. */
  readonly authorizeReplay?: ((record: KeyRecord) => Promise<boolean>) | undefined
}

/** How the handler ended, as the adapter saw it. */
export type Attempt =
  /** A whole answer, as the client would get it, after the framework's error handler. `error`: it was rendered from a throw. */
  | { readonly kind: 'answered'; readonly outcome: Outcome; readonly error?: unknown }
  /** No answer exists: a plain function threw. */
  | { readonly kind: 'threw'; readonly error: unknown }
  /** The answer left without being captured whole (hijacked socket, trailers, broken stream). It ran, and cannot be replayed. */
  | { readonly kind: 'unreplayable'; readonly status: number; readonly why: string }

export type Work<X> = (execution: X) => Promise<Attempt>

export function errorOf(attempt: Attempt): unknown {
  return attempt.kind === 'unreplayable' ? undefined : attempt.error
}

export type RefusalCode =
  | 'key-reused'
  | 'in-progress'
  | 'outcome-unknown'
  | 'response-not-stored'
  | 'replay-not-authorized'
  | 'parked'
  | 'store-unavailable'
  /** An atomic handler misused its transaction: rolled back, nothing is stored. */
  | 'transaction-rolled-back'
  | 'fingerprint-version'
  /** The store answered, and this version cannot read the row. */
  | 'row-unreadable'
  /** This process has more to do than it may queue: nothing was sent to the store. */
  | 'overloaded'
  /** A limit of the scope: nothing was reserved. */
  | 'limit-exceeded'
  | 'key-expired'
  | 'key-too-old'
  | 'input-too-large'

export interface Refusal {
  readonly code: RefusalCode
  readonly retryAfterMs: number | undefined
  /** `key-reused`: what differs from the first request. */
  readonly differs: readonly FingerprintPart[]
  /** `outcome-unknown`: this caller's own attempt, not a retry of it. */
  readonly ownAttempt: boolean
  /** `response-not-stored`: the stored status and headers. */
  readonly outcome: Outcome | undefined
  /** `store-unavailable`: the request, or an earlier one with its key, may be in the store all the same, and may be executed later. */
  readonly maybeAccepted: boolean
  /** `input-too-large`: which limit it is over. */
  readonly limit: InputLimit | undefined
  readonly cause: unknown
}

export type Answer =
  /** The handler ran for this caller, and this is its own answer. */
  | { readonly kind: 'executed'; readonly attempt: Attempt; readonly stored: StoredAs }
  | { readonly kind: 'replayed'; readonly outcome: Outcome; readonly record: KeyRecord }
  /** Deferred: the row and its input are stored, and a worker finishes it. The status of the row shows how far it is. */
  | { readonly kind: 'accepted'; readonly id: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/**
 * `yes`: a retry replays it. `not-stored`: this status is not stored (a 429, a 5xx), and a retry runs again. `failed`: the store did not
 * take it in time. `unprotected`: no claim was held, because the store was down and the operation allows that.
 */
export type StoredAs = 'yes' | 'not-stored' | 'failed' | 'unprotected'

/** The shortest `Retry-After`, and the one without any better knowledge: soon enough for a person, rare enough for a fleet. */
export const retryAfterMsMin = 1_000

/**
 * A call to the store failed: the store is down, or this process has too much to ask of it. `maybeAccepted`: the row may be
 * there, and a worker runs it. It is not undone: that would race the workers.
 */
export function unavailable(cause: unknown, maybeAccepted = false): Answer {
  const code = isLatchkeyError(cause, 'overloaded') ? 'overloaded' : 'store-unavailable'
  return refused(code, { cause, maybeAccepted, retryAfterMs: retryAfterMsMin })
}

/** `close()` was called before the request came. */
export function closed(): Answer {
  return unavailable(new Error('Latchkey is closed'))
}

export function inProgress(retryAfterMs: number = retryAfterMsMin): Answer {
  return refused('in-progress', { retryAfterMs })
}

export function isInProgress(answer: Answer): boolean {
  return answer.kind === 'refused' && answer.refusal.code === 'in-progress'
}

/** The caller's own attempt may have taken effect. */
export function outcomeUnknown(cause: unknown): Answer {
  return refused('outcome-unknown', { ownAttempt: true, retryAfterMs: retryAfterMsMin, cause })
}

export function refused(code: RefusalCode, details: Partial<Omit<Refusal, 'code'>> = {}): Answer {
  return { kind: 'refused', refusal: { code, ...noDetails, ...details } }
}

const noDetails: Omit<Refusal, 'code'> = {
  retryAfterMs: undefined,
  differs: [],
  ownAttempt: false,
  outcome: undefined,
  maybeAccepted: false,
  limit: undefined,
  cause: undefined,
}

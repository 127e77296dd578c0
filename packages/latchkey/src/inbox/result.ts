/** What becomes of a delivery, by the answer of the engine. Pure. */
import { type Answer, errorOf, type Refusal } from '../engine/answer.ts'
import { LatchkeyError, unreachable } from '../ports/errors.ts'
import type { ParkedCause } from '../ports/faculties/inbox.ts'

/**
 * `in-progress`: another delivery of it runs. `failed`: its handler threw, and nothing happened or repeating is harmless. `unknown`: it may have taken
 * effect, and does not run again until its row is settled. `store-down`: the store did not answer; stop taking messages until it does. `overloaded`: this process
 * has more to do than it may queue. `limited`: over a limit of its scope. `unreadable`: a newer version wrote its row. `closed`: `close` was called.
 */
export type RetryCause =
  | 'in-progress'
  | 'failed'
  | 'unknown'
  | 'store-down'
  | 'overloaded'
  | 'limited'
  | 'unreadable'
  | 'closed'

export type InboxResult =
  /** Its outcome is stored: acknowledge it. */
  | { readonly kind: 'done' }
  /** It had happened before, and nothing ran now: acknowledge it. */
  | { readonly kind: 'duplicate' }
  /** Deliver it again, not before `afterMs`. `error`: what the handler threw, or what the store failed with, for your log. */
  | { readonly kind: 'retry'; readonly afterMs: number; readonly cause: RetryCause; readonly error?: unknown }
  /** A copy of it is stored for an operator, under this id: acknowledge it. */
  | { readonly kind: 'parked'; readonly cause: ParkedCause; readonly id: string; readonly error?: unknown }

/** What is to be done about a delivery. */
export type Verdict =
  | { readonly kind: 'done' }
  | { readonly kind: 'duplicate' }
  /** It counts as an attempt. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** `afterMs`: not before this, as far as it is known. */
  | { readonly kind: 'retry'; readonly cause: RetryCause; readonly afterMs: number; readonly error: unknown }
  | { readonly kind: 'park'; readonly cause: ParkedCause; readonly error: unknown }

export interface VerdictRules {
  readonly onUnknown: 'retry' | 'park'
  readonly isClosed: boolean
  /** Of an atomic operation: the handler ran, and what it did was rolled back. */
  readonly rolledBack: boolean
}

export function verdictOf(answer: Answer, rules: VerdictRules): Verdict {
  switch (answer.kind) {
    case 'executed':
      return ofStored(answer)
    case 'replayed':
      return { kind: 'duplicate' }
    case 'accepted':
      // The row has its input, and a worker finishes it.
      return { kind: 'done' }
    case 'refused':
      return ofRefusal(answer.refusal, rules)
    default:
      return unreachable(answer)
  }
}

function ofStored({ stored, attempt }: Extract<Answer, { kind: 'executed' }>): Verdict {
  switch (stored) {
    case 'yes':
      return { kind: 'done' }
    case 'not-stored':
      return { kind: 'failed', error: errorOf(attempt) }
    case 'failed':
      // It happened, and the store has not taken that yet: the recovery of its row decides about the next delivery.
      return { kind: 'retry', cause: 'store-down', afterMs: 0, error: errorOf(attempt) }
    case 'unprotected':
      throw new LatchkeyError('invariant', 'a message ran without a claim, which inbox() refuses')
    default:
      return unreachable(stored)
  }
}

function ofRefusal(refusal: Refusal, { onUnknown, isClosed, rolledBack }: VerdictRules): Verdict {
  const { code, cause: error, retryAfterMs: afterMs = 0 } = refusal
  const retry = (cause: RetryCause): Verdict => ({ kind: 'retry', cause, afterMs, error })
  const park = (cause: ParkedCause): Verdict => ({ kind: 'park', cause, error })
  switch (code) {
    case 'key-reused':
      return park('mismatch')
    case 'parked':
      return park('row-parked')
    case 'input-too-large':
      return park('input-refused')
    case 'outcome-unknown':
      return onUnknown === 'park' ? park('unknown') : retry('unknown')
    case 'response-not-stored':
    case 'key-expired':
      // It happened, and only its answer is gone.
      return { kind: 'duplicate' }
    case 'in-progress':
      return retry('in-progress')
    case 'store-unavailable':
      if (isClosed) return retry('closed')
      // Whether it was the store that failed, or a constraint at the commit, shows when the attempt is counted.
      return rolledBack ? { kind: 'failed', error } : retry('store-down')
    case 'transaction-rolled-back':
      return { kind: 'failed', error }
    case 'overloaded':
      return retry('overloaded')
    case 'limit-exceeded':
      return retry('limited')
    case 'row-unreadable':
    case 'fingerprint-version':
      return retry('unreadable')
    case 'replay-not-authorized':
    case 'key-too-old':
      throw new LatchkeyError('invariant', `a message was refused with ${code}, which inbox() rules out`)
    default:
      return unreachable(code)
  }
}

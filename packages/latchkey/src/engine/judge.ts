/** What a handler's end means for its row. Pure. */
import { isLatchkeyError } from '../ports/errors.ts'
import type { Header, Outcome } from '../ports/outcome.ts'
import type { Attempt } from './answer.ts'
import { keptByDefault, type Settings } from './settings.ts'

export type Judgement =
  | { readonly kind: 'keep'; readonly outcome: Outcome }
  /** Proven, or declared by the operation: nothing happened, a retry may run. */
  | { readonly kind: 'retryable'; readonly errorCode: string; readonly dueInMs?: number }
  | { readonly kind: 'unknown'; readonly errorCode: string }

type Rules = Pick<Settings, 'storeWhen' | 'onFailure' | 'outcomeBytesMax' | 'outcomeVersion'>

export function judge(attempt: Attempt, rules: Rules): Judgement {
  if (attempt.kind === 'unreplayable') return judgeUnreplayable(attempt.status, rules)
  const said = saidByHandler(attempt.error)
  if (said !== undefined) return said
  if (attempt.kind === 'threw') return onFailure(attempt, rules)
  const { status } = attempt.outcome
  if (isKept(rules, status)) return keep(attempt.outcome, rules)
  // Returned, below 500 and not kept: the handler answered "not now" (429, 401 …), so it did nothing. A throw says no such thing.
  const declined = status < 500 && attempt.error === undefined
  return declined ? { kind: 'retryable', errorCode: `http-${status}` } : onFailure(attempt, rules)
}

/** It ran, and its answer is gone: remember that it ran, unless the answer was a failure. */
function judgeUnreplayable(status: number, rules: Rules): Judgement {
  const outcome = { status, headers: [], body: undefined, version: 0 }
  if (status < 500) return keep(outcome, rules)
  return onFailure({ kind: 'answered', outcome }, rules)
}

/** The handler has run: a `storeWhen` that throws must not cost its answer. */
function isKept({ storeWhen }: Rules, status: number): boolean {
  try {
    return storeWhen(status)
  } catch {
    return keptByDefault(status)
  }
}

function onFailure(attempt: Exclude<Attempt, { kind: 'unreplayable' }>, rules: Rules): Judgement {
  const errorCode =
    attempt.kind === 'threw' || attempt.error !== undefined ? codeOf(attempt.error) : `http-${attempt.outcome.status}`
  if (rules.onFailure === 'hold') return { kind: 'unknown', errorCode }
  if (rules.onFailure === 'rerun') return { kind: 'retryable', errorCode }
  return keep(attempt.kind === 'answered' ? attempt.outcome : failureOutcome(attempt.error), rules)
}

/** `notExecuted` and `outcomeUnknown` decide in every kind, also as the cause of the error that was thrown. */
function saidByHandler(error: unknown): Judgement | undefined {
  const chainMax = 8
  for (let depth = 0; depth < chainMax && error !== undefined; depth++) {
    if (isLatchkeyError(error, 'not-executed')) return { kind: 'retryable', errorCode: codeOf(error.cause ?? error) }
    if (isLatchkeyError(error, 'outcome-unknown')) return { kind: 'unknown', errorCode: codeOf(error.cause ?? error) }
    error = error instanceof Error ? error.cause : undefined
  }
  return undefined
}

/** A code for operators, never a message: messages may hold personal data. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'error'
  if ('code' in error && typeof error.code === 'string') return error.code.slice(0, 64)
  return 'name' in error && typeof error.name === 'string' ? error.name.slice(0, 64) : 'error'
}

/** The status that marks a stored throw of a plain function. */
export const storedFailureStatus = 500

function failureOutcome(error: unknown): Outcome {
  const body = Buffer.from(JSON.stringify({ error: codeOf(error) }))
  return { status: storedFailureStatus, headers: [['content-type', 'application/json']], body, version: 0 }
}

/** What still helps a client whose answer was too large to keep. */
const keptWithoutBody = new Set(['location', 'etag'])

function keep(outcome: Outcome, { outcomeBytesMax, outcomeVersion }: Rules): Judgement {
  const { status, headers, body } = outcome
  const version = outcomeVersion
  if (body !== undefined && body.byteLength <= outcomeBytesMax) {
    return { kind: 'keep', outcome: { status, headers, body, version } }
  }
  const kept = headers.filter(([name]: Header) => keptWithoutBody.has(name.toLowerCase()))
  return { kind: 'keep', outcome: { status, headers: kept, body: undefined, version } }
}

/** The answers that Latchkey itself may give to a request of an operation, from what the operation declares. */
import type { DeclaredOperation } from '../engine/operation.ts'
import type { Settings } from '../engine/options.ts'
import {
  describeProblem,
  type Problem,
  type ProblemCode,
  type RenderOptions,
  type RetryAdvice,
} from '../wire/problem.ts'

/** An operation, as it is documented. */
export interface Documented {
  readonly name: string
  readonly kind: DeclaredOperation['kind']
  readonly settings: Settings<never>
  /** Work that may be answered 202 must have begun within this. Undefined: it is never deferred. */
  readonly deadlineMs: number | undefined
  readonly http: RenderOptions
}

export interface OwnAnswer {
  readonly status: number
  readonly code: ProblemCode
  readonly type: string
  readonly title: string
  readonly detail: string
  readonly retry: RetryAdvice
  readonly hasRetryAfter: boolean
}

/** In the order of their statuses. */
export function ownAnswers(operation: Documented): readonly OwnAnswer[] {
  return problemsOf(operation)
    .map(problem => ownAnswer(problem, operation.http))
    .toSorted((left, right) => left.status - right.status)
}

/** What varies in a problem is left out of its description. */
export function ownAnswer(problem: Problem, http: RenderOptions): OwnAnswer {
  const { status, code, type, title, detail, retry, retryAfterMs } = describeProblem(problem, http)
  return { status, code, type, title, detail, retry, hasRetryAfter: retryAfterMs !== undefined }
}

const retryAfterMs = 1_000

function problemsOf({ kind, settings, deadlineMs }: Documented): Problem[] {
  const { onMissingKey, key, keyAgeMsMax, requestAgeMsMax, authorizeReplay, onExpiry, bodyBytesMax, gates } = settings
  const hasDeadline = deadlineMs !== undefined
  // Deferred work is answered 202 in every state before its end.
  const isAnsweredAtOnce = kind === 'deferred'
  const mayBeTooOld = keyAgeMsMax !== undefined || requestAgeMsMax !== undefined
  return [
    ...only(onMissingKey === 'refuse', { code: 'missing-key', header: 'header' in key ? key.header : null }),
    {
      code: 'invalid-key',
      reason: 'malformed',
      detail: 'The key is malformed, or not of the format that is required.',
    },
    ...only(mayBeTooOld, { code: 'key-too-old' }),
    ...only(authorizeReplay !== undefined, { code: 'replay-not-authorized' }),
    ...only(hasDeadline, { code: 'deadline-passed' }),
    ...only(!isAnsweredAtOnce && settings.onInProgress !== 'accept', { code: 'in-progress', retryAfterMs }),
    ...only(!isAnsweredAtOnce, { code: 'outcome-unknown', attempt: 'earlier', retryAfterMs }),
    ...only(kind === 'phased', { code: 'parked', retryAfterMs }),
    { code: 'response-not-stored', originalStatus: 200 },
    ...only(onExpiry === 'gone', { code: 'key-expired' }),
    { code: 'body-too-large', max: bodyBytesMax, unit: 'bytes' },
    { code: 'body-unsupported' },
    { code: 'key-reused', differing: [] },
    ...only(gates !== undefined, { code: 'limit-exceeded', retryAfterMs }),
    { code: 'scope-unresolved' },
    { code: 'body-unreadable' },
    ...only(kind === 'atomic', { code: 'transaction-rolled-back' }),
    { code: 'store-unavailable', retryAfterMs },
    { code: 'overloaded', retryAfterMs },
    { code: 'row-unreadable', retryAfterMs },
    { code: 'fingerprint-version', retryAfterMs },
    ...only(!isAnsweredAtOnce, { code: 'outcome-unknown', attempt: 'own', retryAfterMs }),
  ]
}

function only(applies: boolean, problem: Problem): Problem[] {
  return applies ? [problem] : []
}

/** A request may be answered 202 before its work has ended. */
export function mayBeAccepted({ kind, settings, deadlineMs }: Documented): boolean {
  return kind === 'deferred' || deadlineMs !== undefined || settings.onInProgress === 'accept'
}

/** Renders the engine's refusals as HTTP responses. */
import type { Refusal } from '../../../engine/answer.ts'
import { jsonBytesMax } from '../../../engine/steps/json.ts'
import { unreachable } from '../../../ports/errors.ts'
import type { Outcome } from '../../../ports/outcome.ts'
import type { Problem } from '../../../wire/problem.ts'
import { type RenderedAnswer, renderAccepted } from '../../../wire/rendered-answer.ts'
import { answerProblem, type ProblemHost } from './problem.ts'

/** Used when the engine gives no time: short enough for a person, long enough for a fleet of clients. */
const retryAfterMsDefault = 1_000

export interface RefusedRequest<C> {
  readonly host: ProblemHost<C>
  readonly context: C
  /** Answer 202 instead of 409 while a concurrent duplicate runs. */
  readonly accept: boolean
}

export function renderRefusal<C>(refusal: Refusal, { host, context, accept }: RefusedRequest<C>): RenderedAnswer {
  if (accept && refusal.code === 'in-progress') {
    return renderAccepted({ retryAfterMs: refusal.retryAfterMs ?? retryAfterMsDefault })
  }
  return answerProblem(problemOf(refusal), host, context)
}

function problemOf(refusal: Refusal): Problem {
  const retryAfterMs = refusal.retryAfterMs ?? retryAfterMsDefault
  switch (refusal.code) {
    case 'key-reused':
      return { code: 'key-reused', differing: refusal.differs }
    case 'outcome-unknown':
      return { code: 'outcome-unknown', attempt: refusal.ownAttempt ? 'own' : 'earlier', retryAfterMs }
    case 'input-too-large':
      return { code: 'body-too-large', ...(refusal.limit ?? { max: jsonBytesMax, unit: 'bytes' }) }
    case 'response-not-stored':
      return notStored(refusal.outcome)
    case 'replay-not-authorized':
    case 'key-expired':
    case 'key-too-old':
    case 'transaction-rolled-back':
      return { code: refusal.code }
    case 'store-unavailable':
      return { code: refusal.code, retryAfterMs, about: refusal.maybeAccepted ? 'request-in-doubt' : 'request' }
    case 'in-progress':
    case 'parked':
    case 'overloaded':
    case 'limit-exceeded':
    case 'row-unreadable':
    case 'fingerprint-version':
      return { code: refusal.code, retryAfterMs }
    default:
      return unreachable(refusal.code)
  }
}

/** What still helps a client whose response could not be stored. */
function notStored(outcome: Outcome | undefined): Problem {
  const headerOf = (lower: string) => outcome?.headers.find(([name]) => name.toLowerCase() === lower)?.[1]
  const location = headerOf('location')
  const etag = headerOf('etag')
  return {
    code: 'response-not-stored',
    originalStatus: outcome?.status ?? 200,
    ...(location === undefined ? {} : { location }),
    ...(etag === undefined ? {} : { etag }),
  }
}

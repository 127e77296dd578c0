/** Renders problems: as RFC 9457 has them, or in Stripe's shape. */
import { idempotencyKey, stripeShouldRetry, xShouldRetry } from './headers.ts'
import { type BodyUnit, type Problem, type ProblemCode, problemKinds, type RetryAdvice } from './problem.ts'
import { encodeJson, ownHeaders, type RenderedAnswer } from './rendered-answer.ts'

export interface RenderOptions {
  /** `ietf` (default) answers RFC 9457 problems; `stripe` uses Stripe's codes and body shape. */
  profile?: 'ietf' | 'stripe'
  /**
   * URL under which the site documents the codes, for example `https://api.example.com/problems/`. The code is
   * appended. Default: `urn:latchkey:problem:<code>`, and no Link header.
   */
  problemBase?: string
}

/** Whether a base can stand in a problem's `type` and in a Link header. For the check at construction. */
export function isProblemBase(base: string): boolean {
  return /^https?:\/\/[^\s<>"\\^`{|}]+$/.test(base) && !/[^\x21-\x7e]/.test(base) && URL.canParse(base)
}

/** A problem, as an application that renders it gets it. */
export interface ProblemDetails {
  readonly code: ProblemCode
  /** The status that the profile has for it. */
  readonly status: number
  /** The URI of the code. */
  readonly type: string
  /** One for each code. */
  readonly title: string
  /** A sentence or two for the developer of the client. */
  readonly detail: string
  /** Whether the same request with the same key can help. */
  readonly retry: RetryAdvice
  /** As in `Retry-After`, which is sent either way. */
  readonly retryAfterMs: number | undefined
  /** What varies, as in the members of RFC 9457: `differing_parts`, `original_status`, … */
  readonly extensions: Readonly<Record<string, unknown>>
}

/** What is sent in place of a problem. */
export interface ProblemAnswer {
  /** From 400 to 599. Default: the status of the problem. */
  readonly status?: number
  /** They replace headers of the same name. The others that Latchkey sends, such as Retry-After and Cache-Control, are kept. */
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON; text and bytes as they are, as text/plain and application/octet-stream unless `headers` says otherwise. */
  readonly body: object | string | Uint8Array
}

export function describeProblem(problem: Problem, options: RenderOptions = {}): ProblemDetails {
  const { title, retry } = problemKinds[problem.code]
  return {
    code: problem.code,
    status: statusOf(problem, options.profile === 'stripe'),
    type: problemType(problem.code, options.problemBase),
    title,
    detail: 'detail' in problem ? problem.detail : detailOf(problem),
    retry,
    retryAfterMs: 'retryAfterMs' in problem ? problem.retryAfterMs : undefined,
    extensions: extensionsOf(problem),
  }
}

/** Renders the answer for a problem. Pure: equal problems give equal bytes. */
export function renderProblem(problem: Problem, options: RenderOptions = {}): RenderedAnswer {
  const { status, type, title, detail, retry, retryAfterMs, extensions } = describeProblem(problem, options)
  const stripe = options.profile === 'stripe'
  const content = stripe
    ? { error: { ...stripeError(problem.code), message: detail, ...extensions } }
    : { type, title, status, detail, ...extensions }
  const headers: [string, string][] = [
    ['Content-Type', stripe ? 'application/json' : 'application/problem+json'],
    ['Content-Language', 'en'],
    ...ownHeaders(retry, retryAfterMs),
    ...retryHints(problem, stripe),
    ...(options.problemBase === undefined ? [] : [['Link', `<${type}>; rel="describedby"`] satisfies [string, string]]),
    ...originalHeaders(problem),
  ]
  return { status, headers, body: encodeJson(content) }
}

/** For client libraries that retry by themselves, a few times within seconds, and know no problem codes. */
function retryHints(problem: Problem, stripe: boolean): [string, string][] {
  const helps = retryHelps(problem)
  if (helps === undefined) return []
  const hint: [string, string] = [xShouldRetry, String(helps)]
  return stripe ? [hint, [stripeShouldRetry, String(helps)]] : [hint]
}

/** Undefined: not known, and the library's own rule is as good as ours. */
function retryHelps(problem: Problem): boolean | undefined {
  switch (problem.code) {
    case 'in-progress':
    case 'store-unavailable':
    case 'overloaded':
    case 'limit-exceeded':
    case 'fingerprint-version':
      return true
    case 'outcome-unknown':
      // The caller's own attempt: one retry tells it more. Later ones wait for evidence, which takes minutes.
      return problem.attempt === 'own' ? undefined : false
    case 'parked':
    case 'row-unreadable':
      // A person must act first.
      return false
    default:
      return problemKinds[problem.code].retry === 'no' ? false : undefined
  }
}

function problemType(code: ProblemCode, base: string | undefined): string {
  if (base === undefined) return `urn:latchkey:problem:${code}`
  return base.endsWith('/') || base.endsWith('#') || base.endsWith('=') ? base + code : `${base}/${code}`
}

function statusOf(problem: Problem, stripe: boolean): number {
  if (stripe && problem.code === 'key-reused') return 400
  // Generic clients retry a 504 with the same request, hence the same key; none of them retries a 409.
  if (problem.code === 'outcome-unknown' && problem.attempt === 'own') return 504
  return problemKinds[problem.code].status
}

/** Where "not executed" is not true, or is not what the client asked. */
const unavailableDetails: { readonly [about: string]: string } = {
  'request-in-doubt':
    'The idempotency store became unreachable while the server recorded the request. The request may have been ' +
    'accepted and may be executed later. Send it again later, unchanged and with the same key; a new key could make it ' +
    'happen twice.',
  status:
    'The server cannot reach its idempotency store, so it cannot report the state of the operation. Ask again later.',
}

const ownAttemptUnknown =
  'Your request was started, and the server does not know whether it took effect. The server is finding out. Send the ' +
  'request again later, unchanged and with the same key; a new key could make it happen twice.'

function detailOf(problem: Problem): string {
  const { detail } = problemKinds[problem.code]
  if (problem.code === 'missing-key') return problem.header === null ? detail : missingHeader(problem.header)
  if (problem.code === 'outcome-unknown' && problem.attempt === 'own') return ownAttemptUnknown
  if (problem.code === 'body-too-large') return `${detail} The limit is ${limitText(problem)}.`
  if (problem.code === 'store-unavailable') return unavailableDetails[problem.about ?? 'request'] ?? detail
  if (problem.code !== 'key-reused' || problem.differing.length === 0) return detail
  return `${detail} What differs: ${problem.differing.join(', ')}.`
}

function missingHeader(header = idempotencyKey): string {
  return `This operation requires the request header ${header}, with a new key for each new request.`
}

function limitText({ max, unit }: { max: number; unit: BodyUnit }): string {
  return unit === 'bytes' ? `${max} bytes` : `${max} levels of nesting`
}

function extensionsOf(problem: Problem): Record<string, unknown> {
  switch (problem.code) {
    case 'invalid-key':
      return { reason: problem.reason }
    case 'key-reused':
      return { differing_parts: problem.differing }
    case 'body-too-large':
      return problem.unit === 'bytes' ? { bytes_max: problem.max } : { levels_max: problem.max }
    case 'response-not-stored':
      return { original_status: problem.originalStatus }
    case 'store-unavailable':
      return problem.about === 'request-in-doubt' ? { maybe_accepted: true } : {}
    default:
      return {}
  }
}

function originalHeaders(problem: Problem): [string, string][] {
  if (problem.code !== 'response-not-stored') return []
  const headers: [string, string][] = []
  if (problem.location !== undefined) headers.push(['Location', problem.location])
  if (problem.etag !== undefined) headers.push(['ETag', problem.etag])
  return headers
}

function stripeError(code: ProblemCode): { type: string; code?: string } {
  switch (code) {
    case 'missing-key':
    case 'invalid-key':
      return { type: 'invalid_request_error' }
    case 'key-expired':
    case 'key-too-old':
    case 'body-too-large':
    case 'body-unsupported':
      return { type: 'invalid_request_error', code: code.replaceAll('-', '_') }
    case 'no-such-operation':
      return { type: 'invalid_request_error', code: 'resource_missing' }
    case 'key-reused':
      return { type: 'idempotency_error' }
    case 'in-progress':
      return { type: 'invalid_request_error', code: 'idempotency_key_in_use' }
    case 'limit-exceeded':
      return { type: 'invalid_request_error', code: 'rate_limit' }
    default:
      // Stripe has no code for these; ours lets a client distinguish them.
      return { type: 'api_error', code: code.replaceAll('-', '_') }
  }
}

import { idempotencyKey, latchkeyRetry, retryAfterMilliseconds, stripeShouldRetry, xShouldRetry } from './headers.ts'

/** Why a key field is refused. */
export type KeyFieldFault = 'malformed' | 'wrong-type' | 'empty' | 'too-long' | 'too-short' | 'format'

/** The parts of a request that can differ under one key. */
export type RequestPart = 'method' | 'path' | 'query' | 'body' | 'headers'

/** What the limit of a body counts: its bytes, or how deeply its arrays and objects are nested. */
export type BodyUnit = 'bytes' | 'levels'

/** Every answer that Latchkey makes itself, with what varies in it. */
export type Problem =
  /** `header`: where the key is expected. Default `Idempotency-Key`; null: elsewhere in the request. */
  | { code: 'missing-key'; header?: string | null }
  | { code: 'invalid-key'; reason: KeyFieldFault; detail: string }
  | { code: 'scope-unresolved' }
  | { code: 'key-reused'; differing: readonly RequestPart[] }
  | { code: 'in-progress'; retryAfterMs: number }
  | { code: 'outcome-unknown'; attempt: 'own' | 'earlier'; retryAfterMs: number }
  | { code: 'response-not-stored'; originalStatus: number; location?: string; etag?: string }
  | { code: 'store-unavailable'; retryAfterMs: number; about?: 'request' | 'request-in-doubt' | 'status' }
  | { code: 'overloaded'; retryAfterMs: number }
  | { code: 'limit-exceeded'; retryAfterMs: number }
  | { code: 'row-unreadable'; retryAfterMs: number }
  | { code: 'transaction-rolled-back' }
  | { code: 'fingerprint-version'; retryAfterMs: number }
  | { code: 'body-unreadable' }
  | { code: 'body-too-large'; max: number; unit: BodyUnit }
  | { code: 'body-unsupported' }
  | { code: 'parked'; retryAfterMs?: number }
  | { code: 'replay-not-authorized' }
  | { code: 'key-expired' }
  | { code: 'key-too-old' }
  | { code: 'no-such-operation' }
  | { code: 'deadline-passed' }

export type ProblemCode = Problem['code']

/** Whether sending the same request with the same key again can help. For clients that do not read bodies. */
export type RetryAdvice = 'later' | 'no'

export interface ProblemKind {
  status: number
  title: string
  detail: string
  retry: RetryAdvice
}

/** The table of codes. Titles are constant per code, as RFC 9457, section 3.1.3, asks; details may be replaced. */
export const problemKinds: { readonly [Code in ProblemCode]: ProblemKind } = {
  'missing-key': {
    status: 400,
    title: 'Idempotency key missing',
    detail:
      'This operation requires an idempotency key, with a new key for each new request. Its documentation says where to ' +
      'send it.',
    retry: 'no',
  },
  'invalid-key': {
    status: 400,
    title: 'Idempotency key invalid',
    detail: 'The request does not contain exactly one valid idempotency key.',
    retry: 'no',
  },
  'scope-unresolved': {
    status: 500,
    title: 'Caller not resolved',
    detail: 'The server could not determine whose key this is. The request was not executed.',
    // The cause may be a temporary failure, and nothing ran.
    retry: 'later',
  },
  'key-reused': {
    status: 422,
    title: 'Idempotency key reused',
    detail: 'This key was used before with a different request. The request was not executed. Use a new key for it.',
    retry: 'no',
  },
  'in-progress': {
    status: 409,
    title: 'Request in progress',
    detail: 'A request with this key is still being executed. Send it again later, unchanged and with the same key.',
    retry: 'later',
  },
  'outcome-unknown': {
    status: 409,
    title: 'Outcome unknown',
    detail:
      'A request with this key may or may not have taken effect, and the server is finding out. It was not executed ' +
      'again. Send it again later, unchanged and with the same key; a new key could make it happen twice.',
    retry: 'later',
  },
  'response-not-stored': {
    status: 410,
    title: 'Response not stored',
    detail:
      'The request with this key was executed, but its response was too large, or is confidential, and was not stored. It is not ' +
      'executed again.',
    retry: 'no',
  },
  'store-unavailable': {
    status: 503,
    title: 'Idempotency store unavailable',
    detail:
      'The server cannot reach its idempotency store. The request was not executed. What an earlier request with the ' +
      'same key did is not known. Send it again later, unchanged and with the same key.',
    retry: 'later',
  },
  overloaded: {
    status: 503,
    title: 'Server overloaded',
    detail: 'Too many requests are waiting for the idempotency store. The request was not executed.',
    retry: 'later',
  },
  'limit-exceeded': {
    status: 429,
    title: 'Too many requests',
    detail:
      'This caller has sent more requests of this kind than it may, or too many of its requests are unfinished or ' +
      'stored. The request was not executed. Send it again later, unchanged and with the same key.',
    retry: 'later',
  },
  'row-unreadable': {
    status: 503,
    title: 'Stored record not readable',
    detail:
      'This server cannot read the record that is stored for this key. This request executed nothing. The operator of ' +
      'the server must act first; a new key could make it happen twice.',
    retry: 'later',
  },
  // The developer's mistake and its fix are in the report, not in the client's answer.
  'transaction-rolled-back': {
    status: 500,
    title: 'Request rolled back',
    detail: 'The server failed during the request and rolled it back. None of it took effect.',
    retry: 'later',
  },
  'fingerprint-version': {
    status: 503,
    title: 'Fingerprint of a newer version',
    detail:
      'A newer version of this server recorded the key, and this process cannot compare the request with that record.',
    retry: 'later',
  },
  'body-unreadable': {
    status: 500,
    title: 'Request body not available',
    detail: 'The request body was consumed before it could be compared. The request was not executed.',
    retry: 'no',
  },
  'body-too-large': {
    status: 413,
    title: 'Request body too large',
    detail: 'The request body exceeds the limit of this operation. The request was not executed.',
    retry: 'no',
  },
  'body-unsupported': {
    status: 415,
    title: 'Request body not supported',
    detail:
      'A body of this media type, or with these values, cannot be compared exactly with an earlier one. The request ' +
      'was not executed.',
    retry: 'no',
  },
  parked: {
    status: 409,
    title: 'Request waiting for an operator',
    detail: 'The request with this key was stopped and waits for an operator. It is not executed again until then.',
    retry: 'later',
  },
  'replay-not-authorized': {
    status: 403,
    title: 'Replay not authorized',
    detail: 'This caller may not see the response that is stored for this key. The request was not executed.',
    retry: 'no',
  },
  'key-expired': {
    status: 410,
    title: 'Idempotency key expired',
    detail: 'The request with this key was executed, and its response is no longer stored. It is not executed again.',
    retry: 'no',
  },
  'key-too-old': {
    status: 400,
    title: 'Idempotency key too old',
    detail:
      'The key or the request is older than this operation accepts, and no response is stored for it. It may have been ' +
      'executed long ago; it was not executed now. Check whether it took effect before you use a new key.',
    retry: 'no',
  },
  'no-such-operation': {
    status: 404,
    title: 'No such operation',
    detail: 'There is no operation at this address that this caller may see.',
    retry: 'no',
  },
  // The worker that finds the work too late stores this with the row.
  'deadline-passed': {
    status: 408,
    title: 'Deadline passed',
    detail: 'The work did not start before its deadline. None of it was or will be done. Use a new key.',
    retry: 'no',
  },
}

export interface RenderOptions {
  /** `ietf` (default) answers RFC 9457 problems; `stripe` uses Stripe's codes and body shape. */
  profile?: 'ietf' | 'stripe'
  /**
   * URL under which the site documents the codes, for example `https://api.example.com/problems/`. The code is
   * appended. Default: `urn:latchkey:problem:<code>`, and no Link header.
   */
  problemBase?: string
}

export interface RenderedAnswer {
  status: number
  /** Without Content-Length, which the adapter knows how to set. */
  headers: [string, string][]
  body: Uint8Array
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
  return { status, headers, body: encode(content) }
}

export interface Accepted {
  retryAfterMs: number
  /** Default: that it is in progress. */
  content?: unknown
}

/** The 202 of deferred work, and the 202 that a site may choose over 409 while the first request with a key still runs. */
export function renderAccepted({ retryAfterMs, content = { state: 'in_progress' } }: Accepted): RenderedAnswer {
  const headers: [string, string][] = [['Content-Type', 'application/json'], ...ownHeaders('later', retryAfterMs)]
  return { status: 202, headers, body: encode(content) }
}

/** The state of work, for the client that asks. Without `retryAfterMs` it is final. */
export function renderStatus(content: unknown, retryAfterMs?: number): RenderedAnswer {
  const retry = retryAfterMs === undefined ? 'no' : 'later'
  const headers: [string, string][] = [['Content-Type', 'application/json'], ...ownHeaders(retry, retryAfterMs)]
  return { status: 200, headers, body: encode(content) }
}

function ownHeaders(retry: RetryAdvice, retryAfterMs: number | undefined): [string, string][] {
  const headers: [string, string][] = [
    ['Cache-Control', 'no-store'],
    [latchkeyRetry, retry],
  ]
  if (retryAfterMs === undefined) return headers
  headers.push(['Retry-After', retryAfterSeconds(retryAfterMs)])
  headers.push([retryAfterMilliseconds, String(Math.max(retryAfterMsMin, Math.ceil(retryAfterMs)))])
  return headers
}

/** A client that gets 0 retries in a tight loop. */
const retryAfterMsMin = 1_000

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

/** Whole seconds (RFC 9110, section 10.2.3), rounded up and never 0. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.ceil(Math.max(retryAfterMsMin, retryAfterMs) / 1000))
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

function encode(content: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(content))
}

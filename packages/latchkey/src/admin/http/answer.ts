/** What is sent: the results of the service as JSON, refusals as problems (RFC 9457). */
import { createHash } from 'node:crypto'
import type { Refusal } from '../results.ts'
import { securityHeaders } from './guard.ts'

/** What is stored under an Idempotency-Key, and sent again. */
export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export type ProblemCode =
  | Refusal['kind']
  | 'host-not-allowed'
  | 'cross-site'
  | 'not-json'
  | 'not-authenticated'
  | 'no-such-route'
  | 'method-not-allowed'
  | 'idempotency-key-required'
  | 'if-match-required'
  | 'key-reused'
  | 'in-progress'
  | 'body-too-large'
  | 'store-unavailable'
  | 'failed'

const problems: Readonly<Record<ProblemCode, readonly [status: number, title: string]>> = {
  'not-permitted': [403, 'You do not have the right to do this'],
  'not-found': [404, 'There is no such thing, or you may not see it'],
  'row-moved': [412, 'The row has changed since you read it'],
  'wrong-state': [409, 'The row is in another state'],
  'wrong-verdict': [422, 'The answer does not fit what the row needs'],
  'quarantine-not-over': [409, 'The request may still reach the provider'],
  'too-soon': [429, 'The provider was asked a moment ago'],
  'too-many-acts': [429, 'Too many acts in a minute'],
  'own-proposal': [403, 'A second person has to decide'],
  'proposal-closed': [409, 'The proposal is not open any more'],
  'not-supported': [501, 'The store cannot do this'],
  invalid: [400, 'The request is not valid'],
  'host-not-allowed': [421, 'This name is not served here'],
  'cross-site': [403, 'The request came from another site'],
  'not-json': [415, 'Send application/json'],
  'not-authenticated': [401, 'Sign in first'],
  'no-such-route': [404, 'There is no such route'],
  'method-not-allowed': [405, 'The route does not take this method'],
  'idempotency-key-required': [400, 'Send an Idempotency-Key, so that a retry acts once'],
  'if-match-required': [428, 'Send the version of the row in If-Match'],
  'key-reused': [422, 'The Idempotency-Key was used for another request'],
  'in-progress': [409, 'The same request is under way'],
  'body-too-large': [413, 'The body is too large'],
  'store-unavailable': [503, 'The store did not answer'],
  failed: [500, 'The request failed'],
}

export function problem(code: ProblemCode, more: object = {}): Answer {
  const [status, title] = problems[code]
  const leftMs =
    'retryAfterMs' in more ? more.retryAfterMs : 'leftMs' in more && status === 429 ? more.leftMs : undefined
  const body = { type: `urn:latchkey:problem:${code}`, title, status, code, ...more }
  return typeof leftMs === 'number'
    ? { status, body, headers: { 'retry-after': String(Math.ceil(leftMs / 1_000)) } }
    : { status, body }
}

/** Bytes are shown as text where they are text, and in base64 otherwise. */
export function shownBytes(bytes: Uint8Array): { readonly text: string } | { readonly base64: string } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString()
  return Buffer.from(text).equals(buffer) ? { text } : { base64: buffer.toString('base64') }
}

export function respond({ status, body, headers = {} }: Answer, request: Request): Response {
  const isProblem = status >= 400
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = isProblem ? 'application/problem+json' : 'application/json'
  const sent = new Headers({ 'content-type': type, ...securityHeaders, ...headers })
  if (status !== 200 || request.method !== 'GET')
    return new Response(request.method === 'HEAD' ? null : text, { status, headers: sent })
  // Weak: the same state, in whatever bytes a proxy makes of it. `no-store` keeps it out of caches; the page asks with it.
  const etag = `W/"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`
  sent.set('etag', etag)
  if (request.headers.get('if-none-match') !== etag) return new Response(text, { status, headers: sent })
  sent.delete('content-type')
  return new Response(null, { status: 304, headers: sent })
}

/** An answer of Latchkey's own, ready to be sent. */
import { latchkeyRetry, retryAfterMilliseconds } from './headers.ts'
import type { RetryAdvice } from './problem.ts'

export interface RenderedAnswer {
  status: number
  /** Without Content-Length, which the adapter knows how to set. */
  headers: [string, string][]
  body: Uint8Array
}

export interface Accepted {
  retryAfterMs: number
  /** Default: that it is in progress. */
  content?: unknown
}

/** The 202 of deferred work, and the 202 that a site may choose over 409 while the first request with a key still runs. */
export function renderAccepted({ retryAfterMs, content = { state: 'in_progress' } }: Accepted): RenderedAnswer {
  const headers: [string, string][] = [['Content-Type', 'application/json'], ...ownHeaders('later', retryAfterMs)]
  return { status: 202, headers, body: encodeJson(content) }
}

/** The state of work, for the client that asks. Without `retryAfterMs` it is final. */
export function renderStatus(content: unknown, retryAfterMs?: number): RenderedAnswer {
  const retry = retryAfterMs === undefined ? 'no' : 'later'
  const headers: [string, string][] = [['Content-Type', 'application/json'], ...ownHeaders(retry, retryAfterMs)]
  return { status: 200, headers, body: encodeJson(content) }
}

/** What every one of them has. */
export function ownHeaders(retry: RetryAdvice, retryAfterMs: number | undefined): [string, string][] {
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

/** Whole seconds (RFC 9110, section 10.2.3), rounded up and never 0. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.ceil(Math.max(retryAfterMsMin, retryAfterMs) / 1000))
}

export function encodeJson(content: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(content))
}

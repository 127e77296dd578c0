/** Captures a fetch `Response`: reads it to its end, then builds a new one for the client. */
import type { Attempt } from '../../engine/answer.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { addedHeaders, attemptOf } from '../exchange/exchange.ts'
import { isPlain, partsOf } from './unread-response.ts'

export interface FetchCapture {
  readonly attempt: Attempt
  /** What the client gets; absent when there is none (the handler threw, or a stream broke). */
  readonly response: Response | undefined
}

export interface CaptureOptions {
  /** The response was rendered from this throw. */
  readonly error?: unknown
  /** Headers that outer middleware had set when Latchkey began. They are sent and not stored. */
  readonly before?: readonly Header[]
}

/** Statuses that a `Response` may not have a body with. */
const bodiless = new Set([101, 204, 205, 304])

/** How Hono's Node server marks a response that the handler wrote to the socket itself. */
const alreadySent = 'x-hono-already-sent'

/** Returns at once where the bytes are available without reading. */
export function captureFetchResponse(
  response: Response,
  { error, before = [] }: CaptureOptions = {},
): FetchCapture | Promise<FetchCapture> {
  return captureUnread(response, { error, before }) ?? readResponse(response, { error, before })
}

interface CaptureContext {
  readonly error: unknown
  readonly before: readonly Header[]
}

async function readResponse(response: Response, { error, before }: CaptureContext): Promise<FetchCapture> {
  const { status } = response
  if (status < 200 || response.type === 'error' || response.headers.has(alreadySent)) {
    return { response, attempt: { kind: 'unreplayable', status, why: 'the handler took the connection over' } }
  }
  try {
    const body = new Uint8Array(await response.arrayBuffer())
    const headers = addedHeaders(before, headerList(response.headers))
    return { response: rebuild(response, body), attempt: attemptOf({ status, headers, body }, error) }
  } catch (broken) {
    // No clean end, so no outcome: what the operation declares about failures decides.
    return { response: undefined, attempt: { kind: 'threw', error: error ?? broken } }
  }
}

/** Framing that the handler has declared must be checked against the bytes. A body without a type gets one when it is read. */
const readFirst = new Set(['content-length', 'transfer-encoding', 'trailer', alreadySent])

/** Undefined where the response has to be read. */
function captureUnread(response: Response, { error, before }: CaptureContext): FetchCapture | undefined {
  const parts = partsOf(response)
  if (parts === undefined || parts.body === null || !mayHaveBody(parts.status)) return undefined
  const { status, body, headers } = parts
  if (!headers.some(isType) || headers.some(([name]) => readFirst.has(name))) return undefined
  // A copy: the handler may reuse its buffer while the bytes are being stored, and what is stored must be what is sent.
  const bytes = typeof body === 'string' ? Buffer.from(body) : new Uint8Array(body)
  const sent = typeof body === 'string' ? response : new Response(bytes, { status, headers: response.headers })
  return { response: sent, attempt: attemptOf({ status, headers: addedHeaders(before, headers), body: bytes }, error) }
}

function mayHaveBody(status: number): boolean {
  return status >= 200 && status <= 599 && !bodiless.has(status)
}

function isType([name]: Header): boolean {
  return name.length === 12 && name.toLowerCase() === 'content-type'
}

function rebuild(response: Response, body: Uint8Array): Response {
  const { status, statusText, headers } = response
  const sized = new Headers(headers)
  // The bytes are known now. Another declared length would make the client wait, or cut them off.
  sized.delete('Transfer-Encoding')
  if (!bodiless.has(status)) sized.set('Content-Length', String(body.byteLength))
  return new Response(bodyFor(status, body), { status, statusText, headers: sized })
}

export function fetchAnswer({ status, headers, body }: RenderedAnswer): Response {
  const sized: Header[] = bodiless.has(status)
    ? headers
    : [...headers.filter(([name]) => !isLength(name)), ['content-length', String(body.byteLength)]]
  return new Response(bodyFor(status, body), { status, headers: recordOf(sized) ?? listed(sized) })
}

function isLength(name: string): boolean {
  return name.length === 14 && name.toLowerCase() === 'content-length'
}

/**
 * A plain object costs a server nothing to write out. Undefined where it would differ from `Headers`: Hono's Node server adds a default
 * type to a body without one only if it gets `Headers`, and the first client got that type.
 */
function recordOf(headers: readonly Header[]): Record<string, string> | undefined {
  if (!headers.some(isType)) return undefined
  const record: Record<string, string> = {}
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    if (record[lower] !== undefined || !isPlain([lower, value])) return undefined
    record[lower] = value
  }
  return record
}

function listed(headers: readonly Header[]): Headers {
  const head = new Headers()
  for (const [name, value] of headers) head.append(name, value)
  return head
}

/**
 * Fetch's types require bytes over a plain ArrayBuffer; a Buffer from a pool or a store may be a view into a shared one. An empty body is
 * null, because a server may give even an empty body a type.
 */
function bodyFor(status: number, body: Uint8Array): Uint8Array<ArrayBuffer> | null {
  return bodiless.has(status) || body.byteLength === 0 ? null : new Uint8Array(body)
}

/** Gives the handler's own response to the caller it ran for, or throws what the handler threw. */
export function releaseFetch(
  capture: FetchCapture | undefined,
  released: { attempt: Attempt; headers: readonly Header[] },
): Response {
  if (capture?.response === undefined) {
    throw released.attempt.kind === 'threw' ? released.attempt.error : new Error('the handler returned no response')
  }
  for (const [name, value] of released.headers) capture.response.headers.set(name, value)
  return capture.response
}

/** The headers of a response without a body. Set-Cookie is the one field that fetch does not join: each value is its own entry. */
export function headersOf(response: Response): readonly Header[] {
  return partsOf(response)?.headers ?? headerList(response.headers)
}

function headerList(headers: Headers): Header[] {
  return [...headers].map(([name, value]): Header => [name, value])
}

/** Captures a fetch `Response`: reads it to its end, or up to what is stored, then builds a new one for the client. */
import type { Attempt } from '../../engine/answer.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { addedHeaders, attemptOf } from '../exchange/exchange.ts'
import { isEventStreamType } from '../exchange/outcome-limit.ts'
import { readBody } from './body.ts'
import { type FetchStream, streamBody } from './streamed-response.ts'
import { isPlain, partsOf } from './unread-response.ts'

export interface FetchCapture {
  readonly attempt: Attempt | Promise<Attempt>
  /** What the client gets; absent when there is none (the handler threw, or a stream broke). */
  readonly response: Response | undefined
  /** The response has to be sent now: its handler still writes it, as fast as the client reads. */
  readonly stream?: FetchStream
}

export interface CaptureOptions {
  /** The response was rendered from this throw. */
  readonly error: unknown
  /** Headers that outer middleware had set when Latchkey began. They are sent and not stored. */
  readonly before: readonly Header[]
  /** The largest body that is held. */
  readonly bytesMax: number
  /** The request that `hideDisconnect` was given. */
  readonly request: object
}

/** Statuses that a `Response` may not have a body with. */
const bodiless = new Set([101, 204, 205, 304])

/** How Hono's Node server marks a response that the handler wrote to the socket itself. */
const alreadySent = 'x-hono-already-sent'

/** Returns at once where the bytes are available without reading. */
export function captureFetchResponse(
  response: Response,
  options: CaptureOptions,
): FetchCapture | Promise<FetchCapture> {
  return captureUnread(response, options) ?? readResponse(response, options)
}

async function readResponse(response: Response, options: CaptureOptions): Promise<FetchCapture> {
  const { error, before, bytesMax, request } = options
  const { status } = response
  if (status < 200 || response.type === 'error' || response.headers.has(alreadySent)) {
    return { response, attempt: { kind: 'unreplayable', status, why: 'the handler took the connection over' } }
  }
  try {
    const isEventStream = isEventStreamType(response.headers.get('content-type'))
    const read = await readBody(response, isEventStream ? 0 : bytesMax)
    const headers = addedHeaders(before, headerList(response.headers))
    if (read.kind === 'bytes') {
      const { bytes: body } = read
      return { response: rebuild(response, body), attempt: attemptOf({ status, headers, body }, error) }
    }
    const captured = { status, headers, body: undefined }
    const stream = streamBody({ ...read, captured, error, request, isEventStream })
    const { statusText } = response
    const sent = new Response(stream.body, { status, statusText, headers: response.headers })
    return { response: sent, attempt: stream.attempt, stream }
  } catch (broken) {
    // No clean end, so no outcome: what the operation declares about failures decides.
    return { response: undefined, attempt: { kind: 'threw', error: error ?? broken } }
  }
}

/** Framing that the handler has declared must be checked against the bytes. A body without a type gets one when it is read. */
const readFirst = new Set(['content-length', 'transfer-encoding', 'trailer', alreadySent])

/** Undefined where the response has to be read. */
function captureUnread(response: Response, { error, before }: CaptureOptions): FetchCapture | undefined {
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

/** The headers of a response without a body. Set-Cookie is the one field that fetch does not join: each value is its own entry. */
export function headersOf(response: Response): readonly Header[] {
  return partsOf(response)?.headers ?? headerList(response.headers)
}

function headerList(headers: Headers): Header[] {
  return [...headers].map(([name, value]): Header => [name, value])
}

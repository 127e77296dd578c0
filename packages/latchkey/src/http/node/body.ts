/** The raw bytes of a request's body, noted while the application's own parser reads them. */
import { EventEmitter } from 'node:events'
import { parsedBody } from '../exchange/parsed-body.ts'
import { type BodyRead, tooLarge } from '../exchange/request.ts'
import type { NodeRequest } from './driver.ts'

/** What is looked at to find out whether a body exists and was read. */
export interface NodeBodyRequest extends NodeRequest {
  readonly httpVersionMajor?: number
  readonly readableEnded?: boolean
  readonly readableDidRead?: boolean
  readonly readableEncoding?: BufferEncoding | null
}

/** `reading` until the stream has ended; a body that is not there may never end. */
type Noted =
  | { readonly kind: 'reading' }
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  | { readonly kind: 'too-large'; readonly bytesMax: number }

/** On the request itself: a table of all requests would be work for the garbage collector. */
const noted: unique symbol = Symbol('latchkey: body')

interface Noting {
  [noted]?: Noted
}

/** Bytes that somebody else saw, such as a parser's `verify` hook. */
export function keepBody(req: object, bytes: Uint8Array): void {
  const request: Noting = req
  request[noted] = { kind: 'whole', bytes }
}

/** Notes what flows to whoever reads the request from now on. Reads nothing itself. */
export function teeBody(req: NodeBodyRequest & Noting, bytesMax: number): void {
  // Too late: some of it is gone. What the parser made of it is used instead.
  if (req.readableDidRead === true || req[noted] !== undefined) return
  const chunks: Uint8Array[] = []
  let byteLength = 0
  const mine: Noted = { kind: 'reading' }
  req[noted] = mine
  const note = (chunk: string | Uint8Array) => {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, req.readableEncoding ?? 'utf8') : chunk
    byteLength += bytes.byteLength
    if (byteLength <= bytesMax) chunks.push(bytes)
    else chunks.length = 0
  }
  // By the emitter's own method: a stream's would start the flow before the parser is there. However it is read later
  // (listeners, a pipe, read(), iteration), a stream emits each chunk.
  EventEmitter.prototype.on.call(asEmitter(req), 'data', note)
  req.once('end', () => {
    if (req[noted] !== mine) return
    const whole = byteLength <= bytesMax
    req[noted] = whole ? { kind: 'whole', bytes: Buffer.concat(chunks) } : { kind: 'too-large', bytesMax }
  })
}

function asEmitter(req: NodeRequest): EventEmitter {
  return req as unknown as EventEmitter // Node's requests are; the port types them by the few members it calls
}

export interface BodyLeft {
  /** Raw bytes as the framework's parser kept them, where it has a place for them. */
  readonly raw?: unknown
  readonly parsed: unknown
  /** Names the way to keep raw bytes: one sentence. */
  readonly cure: string
  readonly bytesMax: number
}

/** The best that is left of the body. No body is an empty one. */
export function bodyOf(req: NodeBodyRequest & Noting, { raw, parsed, cure, bytesMax }: BodyLeft): BodyRead {
  const seen = req[noted]
  if (seen?.kind === 'whole') return { kind: 'bytes', bytes: seen.bytes }
  if (seen?.kind === 'too-large') return tooLarge(Math.min(seen.bytesMax, bytesMax))
  if (raw instanceof Uint8Array) return { kind: 'bytes', bytes: raw }
  if (typeof raw === 'string') return { kind: 'bytes', bytes: Buffer.from(raw) }
  if (hasNoBody(req)) return { kind: 'bytes', bytes: new Uint8Array() }
  // Said by the client, and nothing of it has to be read: Node throws it away after the answer.
  if (Number(valueOf(req, 'content-length')) > bytesMax) return tooLarge(bytesMax)
  if (req.readableEnded === false) {
    return unreadable(
      'The body was not read before Latchkey, so it cannot be compared with a retry. ' +
        'Mount its parser before idempotent().',
    )
  }
  return parsedBody(parsed, valueOf(req, 'content-type'), cure)
}

function unreadable(cure: string): BodyRead {
  return { kind: 'unreadable', cure }
}

/** RFC 9112, section 6.3. In HTTP/2 the stream itself says so: RFC 9113, section 8.1. */
function hasNoBody(req: NodeBodyRequest): boolean {
  if ((req.httpVersionMajor ?? 1) >= 2) return endsWithHeaders(req)
  const length = valueOf(req, 'content-length')
  return valueOf(req, 'transfer-encoding') === undefined && (length === undefined || Number(length) === 0)
}

function endsWithHeaders(req: object): boolean {
  const stream: unknown = Reflect.get(req, 'stream')
  return typeof stream === 'object' && stream !== null && Reflect.get(stream, 'endAfterHeaders') === true
}

function valueOf({ rawHeaders }: NodeRequest, lower: string): string | undefined {
  return rawHeaders.find((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === lower)
}

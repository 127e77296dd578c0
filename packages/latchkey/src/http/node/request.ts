/** A Node request as the exchange reads it: its head, and its body as exactly as it is still known. */
import { EventEmitter } from 'node:events'
import { parsedBody } from '../exchange/parsed-body.ts'
import { type BodyRead, type RequestView, tooLarge } from '../exchange/request.ts'
import type { NodeRequest } from './driver.ts'

/** The parts of a request that identify it. */
export type NodeRequestHead = Pick<NodeRequest, 'method' | 'url' | 'originalUrl' | 'rawHeaders'>

export function nodeView<Context>(
  req: NodeRequestHead,
  context: Context,
  body: RequestView<Context>['body'],
): RequestView<Context> {
  // With the mount path that routers remove: the same operation may be mounted in two places.
  const target = originForm(req.originalUrl ?? req.url ?? '/')
  const mark = target.indexOf('?')
  return {
    context,
    method: req.method ?? 'GET',
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? '' : target.slice(mark + 1),
    header: name => rawHeader(req.rawHeaders, name),
    body,
  }
}

/** A proxy may send the absolute form (RFC 9112, section 3.2.2) with one request and the usual form with its retry. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const authority = /^https?:\/\/[^/?]*/i.exec(target)?.[0]
  if (authority === undefined) return target
  const rest = target.slice(authority.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** From the raw list, because the parsed list joins or drops repeated fields. */
function rawHeader(raw: readonly string[], name: string): string[] {
  const lower = name.toLowerCase()
  const lines: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const field = raw[at] ?? ''
    if (field.length === lower.length && field.toLowerCase() === lower) lines.push(raw[at + 1] ?? '')
  }
  return lines
}

/** The members that show whether a body exists and was read. */
export interface NodeBodyRequest extends NodeRequest {
  readonly httpVersionMajor?: number
  readonly readableEnded?: boolean
  readonly readableDidRead?: boolean
  readonly readableEncoding?: BufferEncoding | null
}

/** `reading` until the stream has ended. The stream of a request without a body may never end. */
type RecordedBody =
  | { readonly kind: 'reading' }
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  | { readonly kind: 'too-large'; readonly bytesMax: number }

/** On the request itself: a WeakMap keyed by request costs GC time. */
const recorded: unique symbol = Symbol('latchkey: body')

interface RecordingRequest {
  [recorded]?: RecordedBody
}

/** Records bytes that other code has read, such as a parser's `verify` hook. */
export function keepBody(req: object, bytes: Uint8Array): void {
  const request: RecordingRequest = req
  request[recorded] = { kind: 'whole', bytes }
}

/** Records what the application reads of the request from now on. Reads nothing itself. */
export function teeBody(req: NodeBodyRequest & RecordingRequest, bytesMax: number): void {
  // Part of it is gone, so the parser's result is used instead.
  if (req.readableDidRead === true || req[recorded] !== undefined) return
  const chunks: Uint8Array[] = []
  let byteLength = 0
  const mine: RecordedBody = { kind: 'reading' }
  req[recorded] = mine
  const record = (chunk: string | Uint8Array) => {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, req.readableEncoding ?? 'utf8') : chunk
    byteLength += bytes.byteLength
    if (byteLength <= bytesMax) chunks.push(bytes)
    else chunks.length = 0
  }
  // With the emitter's own method, because a stream's would start the flow before the parser is there. A stream emits each chunk
  // however it is read later: by listeners, a pipe, read() or iteration.
  EventEmitter.prototype.on.call(asEmitter(req), 'data', record)
  req.once('end', () => {
    if (req[recorded] !== mine) return
    const whole = byteLength <= bytesMax
    req[recorded] = whole ? { kind: 'whole', bytes: Buffer.concat(chunks) } : { kind: 'too-large', bytesMax }
  })
}

function asEmitter(req: NodeRequest): EventEmitter {
  return req as unknown as EventEmitter // Node's requests are; the port types them by the few members it calls
}

export interface BodyLeft {
  /** The raw bytes, where the framework's parser retains them. */
  readonly raw?: unknown
  readonly parsed: unknown
  /** How to retain raw bytes, in one sentence. */
  readonly cure: string
  readonly bytesMax: number
}

/** The body as exactly as it is still known. A request without one has an empty body. */
export function bodyOf(req: NodeBodyRequest & RecordingRequest, { raw, parsed, cure, bytesMax }: BodyLeft): BodyRead {
  const seen = req[recorded]
  if (seen?.kind === 'whole') return { kind: 'bytes', bytes: seen.bytes }
  if (seen?.kind === 'too-large') return tooLarge(Math.min(seen.bytesMax, bytesMax))
  if (raw instanceof Uint8Array) return { kind: 'bytes', bytes: raw }
  if (typeof raw === 'string') return { kind: 'bytes', bytes: Buffer.from(raw) }
  if (hasNoBody(req)) return { kind: 'bytes', bytes: new Uint8Array() }
  // The client has declared it, so nothing of it has to be read. Node discards it after the answer.
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

/** RFC 9112, section 6.3. In HTTP/2 the stream shows it: RFC 9113, section 8.1. */
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

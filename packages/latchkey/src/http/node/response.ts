/** Reads what is in a Node response, and sends an answer on one. */
import { isAscii } from 'node:buffer'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import { addedHeaders, type CapturedResponse } from '../exchange/exchange.ts'
import type { Http1Response, NodeResponse, OutputEntry, Trailers } from './driver.ts'

/** Every header set so far, with the spelling it was set in and each value of a repeated name on its own. */
export function headersOf(res: NodeResponse): Header[] {
  const headers: Header[] = []
  for (const name of res.getRawHeaderNames?.() ?? Object.keys(res.getHeaders())) {
    const value = res.getHeader(name)
    if (Array.isArray(value)) for (const one of value) headers.push([name, String(one)])
    else if (value !== undefined) headers.push([name, String(value)])
  }
  return headers
}

export function setHeaders(res: NodeResponse, headers: readonly Header[]): void {
  const values = new Map<string, { name: string; values: string[] }>()
  for (const [name, value] of headers) {
    const known = values.get(name.toLowerCase())
    if (known === undefined) values.set(name.toLowerCase(), { name, values: [value] })
    else known.values.push(value)
  }
  for (const { name, values: all } of values.values()) {
    const [only] = all
    res.setHeader(name, all.length === 1 && only !== undefined ? only : all)
  }
}

export function resetHeaders(res: NodeResponse, headers: readonly Header[]): void {
  for (const name of Object.keys(res.getHeaders())) res.removeHeader(name)
  setHeaders(res, headers)
}

/** RFC 9110, section 8.6: no Content-Length on 204; on 304 it would speak of another response. */
const unsized = new Set([204, 304])

/** Sends an answer of ours on top of what outer middleware set. */
export function sendAnswer(res: NodeResponse, { status, headers, body }: RenderedAnswer): void {
  res.statusCode = status
  // HTTP/2 has no reason phrase, and Node warns when one is set.
  if (!isHttp2(res)) res.statusMessage = ''
  const outer = headersOf(res).filter(([name]) => !isFraming(name))
  resetHeaders(res, mergeHeaders(outer, headers))
  if (unsized.has(status)) return void res.end()
  res.setHeader('Content-Length', String(body.byteLength))
  endWith(res, body)
}

function endWith(res: NodeResponse, body: Uint8Array): void {
  const text = isHttp2(res) ? undefined : asText(body)
  if (text === undefined) return void res.end(body)
  // The port has one of Node's overloads, because that is the one all frameworks type alike.
  ;(res as { end(text: string, encoding: 'latin1'): unknown }).end(text, 'latin1')
}

export function sendBody(res: NodeResponse, body: Uint8Array, trailers: Trailers | undefined): void {
  if (trailers === undefined) return endWith(res, body)
  // Trailers need chunks, which Node chooses when bytes come before the end.
  res.write(body)
  res.addTrailers?.(trailers)
  res.end()
}

/** Node writes a head and a text at once, and a head and bytes one after the other, which costs the system more than all else. */
const textBytesMax = 16_384

/** Plain ASCII only: it is the same in every encoding, also for middleware around `end` that does not look at it. */
function asText(body: Uint8Array): string | undefined {
  if (body.byteLength > textBytesMax || !isAscii(body)) return undefined
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
}

/** Sends on what waits in the response for its writer, who may add to it. Returns how often it was corked. */
export function uncork(res: NodeResponse): number {
  const { writableCorked = 0 } = res
  for (let left = writableCorked; left > 0; left -= 1) res.uncork?.()
  return writableCorked
}

function isFraming(name: string): boolean {
  return ['content-length', 'transfer-encoding', 'content-encoding'].includes(name.toLowerCase())
}

/** Node's HTTP/2 compatibility response, which has a stream instead of a socket of its own. */
export function isHttp2(res: object): boolean {
  return 'stream' in res && !Object.hasOwn(res, 'socket')
}

/** What Node adds to a head by itself. */
const addedByNode = new Set(['date', 'connection', 'keep-alive', 'content-length', 'transfer-encoding'])

/** The headers of a head that is complete: those that were set, and those that were given to `writeHead`. */
export function headersSent(res: Http1Response): Header[] {
  const head = res._header ?? ''
  const headers: Header[] = []
  let at = head.indexOf('\r\n') + 2
  for (let end = head.indexOf('\r\n', at); end > at; end = head.indexOf('\r\n', at)) {
    const colon = head.indexOf(': ', at)
    const name = head.slice(at, colon)
    if (!addedByNode.has(name.toLowerCase()) || res.hasHeader(name)) headers.push([name, head.slice(colon + 2, end)])
    at = end + 2
  }
  return headers
}

/** The body of a response as Node wrote it. The head comes first, alone or before the first part of the body. */
export function bodySent(res: Http1Response, output: readonly OutputEntry[]): Uint8Array {
  const [first, ...rest] = output
  if (first === undefined || !res._hasBody) return new Uint8Array()
  const start = withoutHead(first, res._header ?? '')
  const parts = start.byteLength === 0 ? rest.map(bytesOf) : [start, ...rest.map(bytesOf)]
  const [only] = parts
  const bytes = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
  return res.chunkedEncoding ? withoutChunks(bytes) : bytes
}

function withoutHead({ data, encoding }: OutputEntry, head: string): Uint8Array {
  if (typeof data === 'string') return bytesOf({ data: data.slice(head.length), encoding })
  return data.subarray(Buffer.from(data.buffer, data.byteOffset, data.byteLength).indexOf('\r\n\r\n') + 4)
}

function bytesOf({ data, encoding }: Pick<OutputEntry, 'data' | 'encoding'>): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data, encoding ?? 'utf8') : data
}

/** RFC 9112, section 7.1, as Node writes it. */
function withoutChunks(chunked: Uint8Array): Uint8Array {
  const bytes = Buffer.from(chunked.buffer, chunked.byteOffset, chunked.byteLength)
  const chunks: Uint8Array[] = []
  for (let at = 0; ;) {
    const start = bytes.indexOf('\r\n', at) + 2
    const size = Number.parseInt(bytes.toString('latin1', at, start), 16)
    if (!(size > 0)) return Buffer.concat(chunks)
    chunks.push(bytes.subarray(start, start + size))
    at = start + size + 2
  }
}

const chunkedField = /\r\ntransfer-encoding: chunked\r\n/i

/** A whole response in as few pieces as it needs, with its length instead of chunks, since that is known now. */
export function wholeOutput(res: Http1Response, output: OutputEntry[], body: Uint8Array): OutputEntry[] {
  if (output.length === 1 || !res._hasBody) return output
  const length = `\r\nContent-Length: ${body.byteLength}\r\n`
  const head = res.chunkedEncoding ? String(res._header).replace(chunkedField, length) : String(res._header)
  // Chunked in another way, which is the handler's own.
  if (res.chunkedEncoding && head === res._header) return output
  const text = asText(body)
  if (text !== undefined) return [{ data: head + text, encoding: 'latin1', callback: null }]
  return [
    { data: head, encoding: 'latin1', callback: null },
    { data: body, encoding: null, callback: null },
  ]
}

/** Undefined where there are none. */
export function trailersOf({ _trailer, chunkedEncoding }: Http1Response): Trailers | undefined {
  if (_trailer === '' || !chunkedEncoding) return undefined
  const lines = _trailer.split('\r\n').filter(line => line !== '')
  return Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]))
}

export type CaptureEnd =
  | { readonly kind: 'whole'; readonly response: CapturedResponse }
  /** It has a clean end and cannot be sent again: it has trailers, or bytes that were sent outside the capture. */
  | { readonly kind: 'unreplayable'; readonly status: number; readonly why: string }
  /** The client left an event stream. What its handler made of that counts. */
  | { readonly kind: 'left'; readonly status: number }
  /** No clean end: destroyed, or shorter or longer than it declared. Never an outcome. */
  | BrokenOff

interface BrokenOff {
  readonly kind: 'broken'
  readonly error: Error
}

interface Recorded {
  readonly res: Http1Response
  /** The headers that outer middleware had set. */
  readonly before: readonly Header[]
  readonly output: readonly OutputEntry[]
  /** Bytes of the response were sent before the capture. */
  readonly hasBegun: boolean
  readonly isFinished: boolean
  /** What it was destroyed with. */
  readonly error: unknown
}

export function endOf({ res, before, output, hasBegun, isFinished, error }: Recorded): CaptureEnd {
  const { statusCode: status } = res
  if (!isFinished) return brokenOff(error)
  if (hasBegun) return { kind: 'unreplayable', status, why: 'a part of the response was sent before Latchkey' }
  if (trailersOf(res) !== undefined) return { kind: 'unreplayable', status, why: 'the response has trailers' }
  const body = bodySent(res, output)
  const response = { status, headers: addedHeaders(before, headersSent(res)), body }
  return findLengthFault(res, body.byteLength) ?? { kind: 'whole', response }
}

/** `byteLength`: of the body that was written. */
export function findLengthFault(res: Http1Response, byteLength: number): BrokenOff | undefined {
  const { _contentLength: declared, _hasBody, chunkedEncoding } = res
  if (!_hasBody || chunkedEncoding || declared === null || declared === byteLength) return undefined
  return { kind: 'broken', error: new Error(`the response declared ${declared} bytes and had ${byteLength}`) }
}

/** `cause`: what the response was destroyed with. */
export function brokenOff(cause: unknown): BrokenOff {
  if (cause instanceof Error) return { kind: 'broken', error: cause }
  const error = new Error('the response was destroyed before it ended')
  return { kind: 'broken', error: Object.assign(error, { code: 'ERR_STREAM_PREMATURE_CLOSE' }) }
}

/**
 * The bytes of a request body, noted while the application's parser reads them.
 *
 * A stream put in between would have to be read by the parser, and multipart plugins read `request.raw` instead: the upload would
 * stall. A listener for `data` would start the flow before the parser is there. So the tap notes what the stream emits.
 */
import { type BodyRead, tooLarge } from '../exchange/request.ts'
import type { FastifyReplyLike, FastifyRequestLike, PayloadLike, RawRequestLike } from './driver.ts'
import { canReadAhead, discardAfter, readAhead } from './read-ahead.ts'

export interface BodyTap {
  /** An unread body is read here, and put back for the handler. */
  read(request: Pick<FastifyRequestLike, 'raw'>, reply: Pick<FastifyReplyLike, 'raw'>): BodyRead | Promise<BodyRead>
}

const unreadCure =
  'Part of the body was read before the handler and part of it was not, or a hook has replaced its stream, so it cannot be compared with a ' +
  "retry. Leave all of it to the handler, read it in a content-type parser with parseAs: 'buffer', or let the multipart plugin attach it to " +
  'request.body (attachFieldsToBody). Over HTTP/2, an upload that the handler streams needs a Content-Length.'

/** `bytesMax`: what comes after it is not held. Fastify's own limit does not hold for parsers that stream. */
export function tapBody(payload: PayloadLike, bytesMax: number): BodyTap {
  const chunks: Buffer[] = []
  let bytes = 0
  let ended = false
  const note = (chunk: unknown) => {
    const buffer = bufferOf(chunk, payload.readableEncoding)
    bytes += buffer.byteLength
    if (bytes <= bytesMax) chunks.push(buffer)
    else chunks.length = 0
  }
  const { emit } = payload
  const tapped: typeof emit = (event, ...args) => {
    if (event === 'data') note(args[0])
    if (event === 'end') {
      ended = true
      untap()
    }
    return Reflect.apply(emit, payload, [event, ...args])
  }
  payload.emit = tapped
  const untap = () => {
    // Back to the prototype's, unless the application has replaced this one.
    if (payload.emit === tapped) Reflect.deleteProperty(payload, 'emit')
  }

  function putBack(raw: RawRequestLike): BodyRead {
    untap()
    if (bytes > bytesMax) return tooLarge(bytesMax)
    const whole = Buffer.concat(chunks.splice(0))
    if (whole.byteLength > 0) raw.unshift(whole)
    return { kind: 'bytes', bytes: whole }
  }

  return {
    read({ raw }, { raw: res }) {
      if (bytes > bytesMax) return tooLarge(bytesMax)
      // Given away: it need not be held twice while the handler runs.
      if (ended) return { kind: 'bytes', bytes: Buffer.concat(chunks.splice(0)) }
      if (hasNoBody(raw)) return { kind: 'bytes', bytes: new Uint8Array() }
      // Declared by the client, so nothing of it has to be read: Node discards it after the answer.
      const declared = Number(raw.headers['content-length'])
      if (declared > bytesMax) return tooLarge(bytesMax)
      if (payload !== raw || !canReadAhead(raw)) return { kind: 'unreadable', cure: unreadCure }
      discardAfter(res, raw)
      return readAhead(
        raw,
        () => ({ bytes, bytesMax }),
        () => putBack(raw),
      )
    },
  }
}

function bufferOf(chunk: unknown, encoding: BufferEncoding | null | undefined): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk, encoding ?? 'utf8')
  return chunk instanceof Uint8Array ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : Buffer.alloc(0)
}

/** The parser does not read a body that does not exist, so its end may never be emitted. RFC 9112, section 6.3; RFC 9113, section 8.1. */
function hasNoBody(raw: RawRequestLike): boolean {
  if (raw.httpVersionMajor >= 2) return endsWithHeaders(raw)
  const length = raw.headers['content-length']
  return raw.headers['transfer-encoding'] === undefined && (length === undefined || Number(length) === 0)
}

function endsWithHeaders(raw: object): boolean {
  const stream: unknown = Reflect.get(raw, 'stream')
  return typeof stream === 'object' && stream !== null && Reflect.get(stream, 'endAfterHeaders') === true
}

/**
 * Sends what a detached response is given while its handler writes it. The handler waits for as long as the client does not read. The end
 * of the real response stays held, and with a declared length the bytes that reach it.
 */
import type { Header } from '../../../ports/outcome.ts'
import { mergeHeaders } from '../../exchange/answers/merge-headers.ts'
import type { Http1Response, NodeResponse, OutputEntry } from '../driver.ts'
import { type Laid, lift } from '../overlay.ts'
import { headersSent, isHttp2, resetHeaders, uncork } from '../response.ts'
import { readChunks } from './chunk-reader.ts'

export interface DetachedStream {
  /** The length of the body so far. */
  readonly bytes: number
  readonly isClientGone: boolean
  /** Calls `taken` when the client has room for more, or has left. */
  write(piece: Uint8Array, taken: () => void): void
  /** What completes the body. */
  rest(): Uint8Array
}

export interface StreamedPair {
  /** The response that the handler works on. */
  readonly own: Http1Response
  readonly laid: Laid
  /** What the handler has written, with the head. It is left empty. */
  readonly output: OutputEntry[]
  /** Called when the client has left. */
  readonly left: () => void
}

/** Whether the real response can be written to while the handler works on another one. */
export function canStream({ covered }: Laid): boolean {
  // Middleware around these may call them later, when they lead to the handler's response.
  return !['write', 'writeHead', 'end'].some(name => covered.has(name))
}

export function streamDetached(res: NodeResponse, { own, laid, output, left }: StreamedPair): DetachedStream {
  const unframe = own.chunkedEncoding ? readChunks() : (piece: Uint8Array) => [piece]
  const declared = own.chunkedEncoding ? null : own._contentLength
  const rest: Uint8Array[] = []
  const waiting = new Set<() => void>()
  let bytes = 0
  let isClientGone = lift(res, laid, () => sendHead(res, own))

  function write(piece: Uint8Array, taken: () => void): void {
    const passed: Uint8Array[] = []
    for (const part of unframe(piece)) {
      bytes += part.byteLength
      if (declared === null || bytes < declared) passed.push(part)
      else if (bytes === declared) rest.push(Buffer.from(part))
    }
    if (passed.length === 0 || isClientGone) return void setImmediate(taken)
    waiting.add(taken)
    // A response that is destroyed may call back with an error, or not at all. The handler does not learn of it.
    const flushed = () => void (waiting.delete(taken) && taken())
    lift(res, laid, () => {
      Reflect.apply(res.write, res, [Buffer.concat(passed), flushed])
      // Node 26 corks a response at its first write and uncorks it later, by a method that leads to the handler's response then.
      uncork(res)
    })
  }

  function leave(): void {
    isClientGone = true
    for (const taken of [...waiting]) if (waiting.delete(taken)) setImmediate(taken)
    left()
  }

  for (const piece of withoutHead(output.splice(0))) write(piece, () => {})
  if (isClientGone) process.nextTick(leave)
  else lift(res, laid, () => res.once('close', leave))
  return {
    get bytes() {
      return bytes
    },
    get isClientGone() {
      return isClientGone
    },
    write,
    rest: () => Buffer.concat(rest),
  }
}

/** True where no client is left to send to. */
function sendHead(res: NodeResponse, own: Http1Response): boolean {
  if (res.writableEnded || res.destroyed === true || Reflect.get(res, 'closed') === true) return true
  setHead(res, own, [])
  Reflect.apply(Reflect.get(res, 'flushHeaders') as () => void, res, []) // of HTTP/1 and HTTP/2
  return false
}

export function setHead(res: NodeResponse, own: Http1Response, extra: readonly Header[]): void {
  res.statusCode = own.statusCode
  // HTTP/2 has no reason phrase, and Node warns when one is set.
  if (!isHttp2(res)) res.statusMessage = own.statusMessage
  resetHeaders(res, mergeHeaders(headersSent(own), extra))
}

/** The head comes first, alone or before the first part of the body. */
function withoutHead(output: readonly OutputEntry[]): Uint8Array[] {
  const [start, ...pieces] = output.map(({ data }) => Buffer.from(data))
  return start === undefined ? [] : [start.subarray(start.indexOf('\r\n\r\n') + 4), ...pieces]
}

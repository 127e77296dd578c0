/**
 * Sends what a detached response is given while its handler writes it, on a stream of HTTP/2. The handler waits for as long as the client
 * does not read. The end of the stream stays held, and with a declared length the bytes that reach it.
 */
import type { Writable } from 'node:stream'
import { readChunks } from './chunk-reader.ts'
import type { Http1Response, NodeResponse, OutputEntry } from '../driver.ts'
import { callUnder, type Laid } from '../overlay.ts'
import { type HeadWriter, headersSent, isHttp2, resetHeaders } from '../response.ts'

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
export function canStream(res: NodeResponse, { covered }: Laid): boolean {
  // Outer middleware around these would call what the handler calls.
  return isHttp2(res) && !['write', 'writeHead', 'end'].some(name => covered.has(name))
}

export function streamDetached(res: NodeResponse, { own, laid, output, left }: StreamedPair): DetachedStream {
  const stream = Reflect.get(res, 'stream') as Writable // of HTTP/2: see `canStream`
  const unframe = own.chunkedEncoding ? readChunks() : (piece: Uint8Array) => [piece]
  const declared = own.chunkedEncoding ? null : own._contentLength
  const rest: Uint8Array[] = []
  let bytes = 0

  function write(piece: Uint8Array, taken: () => void): void {
    const passed: Uint8Array[] = []
    for (const part of unframe(piece)) {
      bytes += part.byteLength
      if (declared === null || bytes < declared) passed.push(part)
      else if (bytes === declared) rest.push(Buffer.from(part))
    }
    if (passed.length === 0 || stream.destroyed) return void setImmediate(taken)
    // A stream that is destroyed calls it with an error, which the handler does not learn.
    stream.write(Buffer.concat(passed), () => taken())
  }

  sendHead(res, own, laid)
  for (const piece of withoutHead(output.splice(0))) write(piece, () => {})
  if (stream.destroyed) process.nextTick(left)
  else stream.once('close', left)
  return {
    get bytes() {
      return bytes
    },
    get isClientGone() {
      return stream.destroyed
    },
    write,
    rest: () => Buffer.concat(rest),
  }
}

/** Past what forwards to the handler's response. */
function sendHead(res: NodeResponse, own: Http1Response, laid: Laid): void {
  const call = (name: string, args: readonly unknown[]) => callUnder(res, laid, [name, args])
  const head: HeadWriter = {
    getHeaders: () => call('getHeaders', []) as ReturnType<HeadWriter['getHeaders']>, // the same method
    setHeader: (...args) => call('setHeader', args),
    removeHeader: (...args) => void call('removeHeader', args),
  }
  resetHeaders(head, headersSent(own))
  call('writeHead', [own.statusCode])
}

/** The head comes first, alone or before the first part of the body. */
function withoutHead(output: readonly OutputEntry[]): Uint8Array[] {
  const [start, ...pieces] = output.map(({ data }) => Buffer.from(data))
  return start === undefined ? [] : [start.subarray(start.indexOf('\r\n\r\n') + 4), ...pieces]
}

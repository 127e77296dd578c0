/** What a handler writes, kept instead of sent, with the answers a socket would have given it. */

type Done = (error?: Error | null) => void

export interface ResponseBuffer {
  readonly chunks: Uint8Array[]
  readonly highWaterMark: number
  byteLength: number
  sinceDrain: number
  needsDrain: boolean
  ended: boolean
  /** The tick after the end, as if the last byte had left. */
  finished: boolean
}

/** Node's own default; a response that names another is asked for it. */
const highWaterMarkDefault = 16_384

export function responseBuffer(highWaterMark: number = highWaterMarkDefault): ResponseBuffer {
  return {
    chunks: [],
    highWaterMark,
    byteLength: 0,
    sinceDrain: 0,
    needsDrain: false,
    ended: false,
    finished: false,
  }
}

export function keepBytes(buffer: ResponseBuffer, bytes: Uint8Array): void {
  buffer.chunks.push(bytes)
  buffer.byteLength += bytes.byteLength
  buffer.sinceDrain += bytes.byteLength
}

/** As `write` answers: false once the usual buffer is full; `drain` follows. */
export function flow(buffer: ResponseBuffer, drain: () => void): boolean {
  if (buffer.sinceDrain < buffer.highWaterMark) return !buffer.needsDrain
  if (buffer.needsDrain) return false
  buffer.needsDrain = true
  // One turn of the event loop per full buffer: a fast source must not starve the process, and always goes on.
  setImmediate(() => {
    buffer.needsDrain = false
    buffer.sinceDrain = 0
    if (!buffer.ended) drain()
  })
  return false
}

export function bytesOf({ chunks }: ResponseBuffer): Uint8Array {
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
}

export interface WriteCall {
  readonly chunk: unknown
  readonly encoding: BufferEncoding | undefined
  readonly done: Done | undefined
}

/** write(chunk, done) · write(chunk, encoding, done) · end(done) · … */
export function writeCall(chunk: unknown, encoding: unknown, done: unknown): WriteCall {
  if (typeof chunk === 'function') return { chunk: undefined, encoding: undefined, done: chunk as Done } // Node's overload
  if (typeof encoding === 'function') return { chunk, encoding: undefined, done: encoding as Done } // Node's overload
  const known = typeof encoding === 'string' && Buffer.isEncoding(encoding) ? encoding : undefined
  return { chunk, encoding: known, done: typeof done === 'function' ? (done as Done) : undefined } // Node's overload
}

export function toBytes({ chunk, encoding }: WriteCall): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk, encoding)
  if (chunk instanceof Uint8Array) return chunk
  const name = chunk === null ? 'null' : typeof chunk
  throw nodeError(TypeError, 'ERR_INVALID_ARG_TYPE', `a response chunk must be a string or bytes, and is ${name}`)
}

/** An error with the code that Node gives in the same place, because frameworks look at it. */
export function nodeError(type: ErrorConstructor | RangeErrorConstructor, code: string, message: string): Error {
  return Object.assign(new type(message), { code })
}

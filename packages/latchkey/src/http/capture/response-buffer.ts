/** What a handler writes, kept instead of sent, with the answers a socket would have given it. */

export type Bytes = string | Uint8Array
type Done = (error?: Error | null) => void

export interface ResponseBuffer {
  readonly ended: boolean
  readonly finished: boolean
  readonly needsDrain: boolean
  readonly byteLength: number
  /** As `write`: false once the usual buffer is full; `drain` follows. */
  write(chunk: unknown, encoding?: unknown, done?: unknown): boolean
  /** False when it had ended before. */
  end(chunk?: unknown, encoding?: unknown, done?: unknown): boolean
  bytes(): Uint8Array
}

export interface BufferEvents {
  /** Before the first byte, and before an end without one: the moment Node would send the head. */
  beforeBytes(): void
  drain(): void
  /** On the tick after the end, as if the last byte had left. */
  finish(): void
  lateWrite(error: Error): void
}

/** Node's own default; a response that names another is asked for it. */
const highWaterMarkDefault = 16_384

export function responseBuffer(events: BufferEvents, highWaterMark: number = highWaterMarkDefault): ResponseBuffer {
  const chunks: Uint8Array[] = []
  const state = { ended: false, finished: false, needsDrain: false, byteLength: 0, sinceDrain: 0 }

  function keep(bytes: Uint8Array): void {
    chunks.push(bytes)
    state.byteLength += bytes.byteLength
    state.sinceDrain += bytes.byteLength
  }

  function flow(): boolean {
    if (state.sinceDrain < highWaterMark) return !state.needsDrain
    if (state.needsDrain) return false
    state.needsDrain = true
    // One turn of the event loop per full buffer: a fast source must not starve the process, and always goes on.
    setImmediate(() => {
      state.needsDrain = false
      state.sinceDrain = 0
      if (!state.ended) events.drain()
    })
    return false
  }

  return {
    get ended() {
      return state.ended
    },
    get finished() {
      return state.finished
    },
    get needsDrain() {
      return state.needsDrain
    },
    get byteLength() {
      return state.byteLength
    },
    write(chunk, encoding, done) {
      const call = argumentsOf(chunk, encoding, done)
      if (state.ended) return refuseLate(call.done, events)
      const bytes = toBytes(call.chunk, call.encoding)
      events.beforeBytes()
      // Copied: the writer may reuse its buffer as soon as `done` was called.
      keep(typeof call.chunk === 'string' ? bytes : new Uint8Array(bytes))
      if (call.done !== undefined) process.nextTick(call.done)
      return flow()
    },
    end(chunk, encoding, done) {
      const call = argumentsOf(chunk, encoding, done)
      if (state.ended) {
        if (call.chunk !== undefined && call.chunk !== null) refuseLate(call.done, events)
        else if (call.done !== undefined) process.nextTick(call.done)
        return false
      }
      const bytes = call.chunk === undefined || call.chunk === null ? undefined : toBytes(call.chunk, call.encoding)
      events.beforeBytes()
      if (bytes !== undefined) keep(bytes)
      state.ended = true
      process.nextTick(() => {
        state.finished = true
        events.finish()
        call.done?.()
      })
      return true
    },
    bytes: () => (chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
  }
}

interface Call {
  readonly chunk: unknown
  readonly encoding: BufferEncoding | undefined
  readonly done: Done | undefined
}

/** write(chunk, done) · write(chunk, encoding, done) · end(done) · … */
function argumentsOf(chunk: unknown, encoding: unknown, done: unknown): Call {
  if (typeof chunk === 'function') return { chunk: undefined, encoding: undefined, done: chunk as Done } // Node's overload
  if (typeof encoding === 'function') return { chunk, encoding: undefined, done: encoding as Done } // Node's overload
  const known = typeof encoding === 'string' && Buffer.isEncoding(encoding) ? encoding : undefined
  return { chunk, encoding: known, done: typeof done === 'function' ? (done as Done) : undefined } // Node's overload
}

function toBytes(chunk: unknown, encoding: BufferEncoding | undefined): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk, encoding)
  if (chunk instanceof Uint8Array) return chunk
  const name = chunk === null ? 'null' : typeof chunk
  throw nodeError(TypeError, 'ERR_INVALID_ARG_TYPE', `a response chunk must be a string or bytes, and is ${name}`)
}

function refuseLate(done: Done | undefined, events: BufferEvents): false {
  const error = nodeError(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end')
  process.nextTick(() => {
    done?.(error)
    events.lateWrite(error)
  })
  return false
}

/** An error with the code that Node gives in the same place, because frameworks look at it. */
export function nodeError(type: ErrorConstructor | RangeErrorConstructor, code: string, message: string): Error {
  return Object.assign(new type(message), { code })
}

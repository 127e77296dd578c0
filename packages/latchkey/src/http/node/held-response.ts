/** A response in our hands: what its handler does to it is kept instead of sent. */
import type { Header } from '../../ports/outcome.ts'
import { addedHeaders, type CapturedResponse } from '../exchange/exchange.ts'
import type { Covered, state } from './covered.ts'
import type { HiddenSocket } from './hide-disconnect/socket.ts'
import type { NodeResponse, Trailers } from './driver.ts'
import { bytesOf, flow, keepBytes, nodeError, type ResponseBuffer, toBytes, type WriteCall } from './response-buffer.ts'
import { headersOf } from './response-head.ts'
import { tellInside } from './hide-disconnect/events.ts'

export type CaptureEnd =
  | { readonly kind: 'whole'; readonly response: CapturedResponse }
  /** It has a clean end, and cannot be sent again: trailers, or a handler that wrote to the socket itself. */
  | { readonly kind: 'unreplayable'; readonly status: number; readonly why: string }
  /** No clean end: destroyed, or shorter or longer than it declared. Never an outcome. */
  | { readonly kind: 'broken'; readonly error: Error }

export interface LaidResponse extends NodeResponse {
  socket?: unknown
  /** Plain values in HTTP/1, a stream's flags in HTTP/2. */
  destroyed?: boolean
  finished?: boolean
  [state]?: Held | undefined
}

export interface Held extends Covered<LaidResponse> {
  readonly outer: Held | undefined
  /** The headers that outer middleware had set. */
  readonly before: readonly Header[]
  readonly buffer: ResponseBuffer
  readonly isPlain: boolean
  /** What `destroyed` really is by now, where it is a plain value. */
  realDestroyed: boolean
  headSent: boolean
  end: CaptureEnd | undefined
  /** Finished and closed, as far as the handler can tell. */
  closed: boolean
  trailers: Trailers | undefined
  readonly socket: HiddenSocket
  /** Puts the real socket back. */
  uncoverSocket: () => void
  resolve(end: CaptureEnd): void
}

export function settle(held: Held, end: CaptureEnd): void {
  held.end ??= end
  held.resolve(held.end)
}

export function breakOff(held: Held, cause: unknown): void {
  settle(held, { kind: 'broken', error: asError(cause) })
  showPlain(held)
  process.nextTick(() => tellInside(held.veil, 'close'))
}

export function isClosed({ closed, end }: Held): boolean {
  return closed || end?.kind === 'broken'
}

/** Where flags are plain values, they are kept at what the handler may see. */
export function showPlain(held: Held): void {
  if (!held.isPlain) return
  held.target.destroyed = isClosed(held)
  held.target.finished = held.buffer.ended
}

/** The moment Node would send the head. */
export function ensureHead({ target, headSent }: Held): void {
  // Looked up each time: a hook that the handler's own middleware laid over writeHead has to run.
  if (!headSent) Reflect.apply(Reflect.get(target, 'writeHead'), target, [target.statusCode])
}

export function write(held: Held, call: WriteCall): boolean {
  const { buffer, target } = held
  if (buffer.ended) return refuseLate(held, call)
  const bytes = toBytes(call)
  ensureHead(held)
  // Copied: the writer may reuse its buffer as soon as `done` was called.
  keepBytes(buffer, typeof call.chunk === 'string' ? bytes : new Uint8Array(bytes))
  if (call.done !== undefined) process.nextTick(call.done)
  return flow(buffer, () => void target.emit('drain'))
}

export function end(held: Held, call: WriteCall): void {
  const { buffer } = held
  const hasChunk = call.chunk !== undefined && call.chunk !== null
  if (buffer.ended) {
    if (hasChunk) refuseLate(held, call)
    else if (call.done !== undefined) process.nextTick(call.done)
    return
  }
  const bytes = hasChunk ? toBytes(call) : undefined
  ensureHead(held)
  if (bytes !== undefined) keepBytes(buffer, bytes)
  buffer.ended = true
  held.end ??= endOf(held)
  showPlain(held)
  process.nextTick(finish, held, call)
}

function finish(held: Held, { done }: WriteCall): void {
  const { buffer, veil } = held
  buffer.finished = true
  try {
    tellInside(veil, 'prefinish')
    tellInside(veil, 'finish')
    // Node closes a response right after it has finished.
    held.closed = true
    showPlain(held)
    tellInside(veil, 'close')
  } finally {
    // Only now: a release before would have the handler's listeners hear the same twice.
    if (held.end !== undefined) settle(held, held.end)
  }
  done?.()
}

function refuseLate({ target }: Held, { done }: WriteCall): false {
  const error = nodeError(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end')
  process.nextTick(() => {
    done?.(error)
    if (target.listenerCount('error') > 0) target.emit('error', error)
  })
  return false
}

/** Statuses whose bytes Node never sends: RFC 9110, sections 15.3.5 and 15.4.5. */
const bodiless = new Set([204, 304])

function endOf({ target, before, buffer, trailers }: Held): CaptureEnd {
  const status = target.statusCode
  if (trailers !== undefined) return { kind: 'unreplayable', status, why: 'the response has trailers' }
  if (bodiless.has(status)) return whole(target, before, new Uint8Array())
  const declared = target.getHeader('content-length')
  if (declared !== undefined && Number(declared) !== buffer.byteLength) {
    return {
      kind: 'broken',
      error: new Error(`the response declared ${String(declared)} bytes and had ${buffer.byteLength}`),
    }
  }
  return whole(target, before, bytesOf(buffer))
}

function whole(res: NodeResponse, before: readonly Header[], body: Uint8Array): CaptureEnd {
  return { kind: 'whole', response: { status: res.statusCode, headers: addedHeaders(before, headersOf(res)), body } }
}

function asError(cause: unknown): Error {
  if (cause instanceof Error) return cause
  return nodeError(Error, 'ERR_STREAM_PREMATURE_CLOSE', 'the response was destroyed before it ended')
}

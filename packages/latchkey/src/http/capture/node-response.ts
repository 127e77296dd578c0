/**
 * Captures a response on Node's own response object, below every framework: whatever ends in `res` is caught.
 *
 * From the start until `release` or `replace`, nothing but 1xx reaches the socket; the handler sees a response that behaves as
 * without Latchkey. Everything is held in memory, also past the cap of what is stored, because the outcome must be durable
 * before the client sees its first byte, and the first client gets the answer whole.
 */
import type { Attempt } from '../../engine/answer.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { mergeHeaders } from '../exchange/merge-headers.ts'
import { addedHeaders, attemptOf, type CapturedResponse } from '../exchange/outcome.ts'
import { hiddenSocket } from './hidden-socket.ts'
import type { NodeRequest, NodeResponse, Trailers } from './node-types.ts'
import { type Overrides, overrides } from './overrides.ts'
import { headersOf, isHttp2, resetHeaders, sendAnswer, setHeaders } from './response-head.ts'
import { nodeError, type ResponseBuffer, responseBuffer } from './response-buffer.ts'
import { virtualHead } from './virtual-head.ts'
import { veil } from './veil.ts'

export type CaptureEnd =
  | { readonly kind: 'whole'; readonly response: CapturedResponse }
  /** It has a clean end, and cannot be sent again: trailers, or a handler that wrote to the socket itself. */
  | { readonly kind: 'unreplayable'; readonly status: number; readonly why: string }
  /** No clean end: destroyed, or shorter or longer than it declared. Never an outcome. */
  | { readonly kind: 'broken'; readonly error: Error }

export interface Capture {
  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  readonly ended: Promise<CaptureEnd>
  /** Gives the response back and sends what was captured, with these headers added. A broken one ends the connection. */
  release(extra: readonly Header[]): void
  /** Gives the response back as it was at the start and sends this instead. Nothing of the handler's head stays. */
  replace(answer: RenderedAnswer): void
}

/** Statuses whose bytes Node never sends: RFC 9110, sections 15.3.5 and 15.4.5. */
const bodiless = new Set([204, 304])
/**
 * Where `on-finished`, which Koa and Express's `sendFile` use, keeps one listener for all who ask. Were it shared with those who
 * asked before the capture, the handler's part would hear of the client's disconnect with them, and destroy its streams.
 */
const sharedListener = '__onFinished'
const liveMethods = ['writeContinue', 'writeProcessing', 'writeEarlyHints', 'writeInformation']

/** Start it right before the handler runs. With `req`, the client's disconnect is hidden from the handler there too. */
export function captureResponse(res: NodeResponse, req?: NodeRequest): Capture {
  const before = headersOf(res)
  const { promise: ended, resolve } = deferred<CaptureEnd>()
  const own = overrides(res)
  const hidden = veil(res, ['finish', 'prefinish', 'close'])
  const state: State = { end: undefined, closed: false, trailers: undefined, live: false }
  const settle = (end: CaptureEnd) => {
    state.end ??= end
    resolve(state.end)
  }
  const breakOff = (cause: unknown) => {
    settle({ kind: 'broken', error: asError(cause) })
    process.nextTick(() => hidden.emitOnce('close'))
  }
  const socket = hiddenSocket({
    hijacked: () =>
      settle({ kind: 'unreplayable', status: res.statusCode, why: 'the handler wrote to the socket itself' }),
    destroyed: breakOff,
  })
  const head = virtualHead(res, own)
  const buffer = responseBuffer(
    {
      beforeBytes: () => head.ensureSent(),
      drain: () => void res.emit('drain'),
      finish() {
        try {
          hidden.emitOnce('prefinish', 'finish')
          // Node closes a response right after it has finished.
          state.closed = true
          hidden.emitOnce('close')
        } finally {
          // Only now: a release before would have the handler's listeners hear the same twice.
          if (state.end !== undefined) settle(state.end)
        }
      },
      lateWrite: error => void (res.listenerCount('error') > 0 && res.emit('error', error)),
    },
    res.writableHighWaterMark,
  )
  layWrites(res, own, { buffer, state, breakOff, whole: () => endOf(res, { before, buffer, state }) })
  const isClosed = () => state.closed || state.end?.kind === 'broken'
  layFlags(own, { buffer, isClosed, isHeadSent: () => head.sent })
  own.hide(sharedListener)
  const request = hideRequest(req, socket.of)
  if (!isHttp2(res)) own.value('socket', real => (state.live ? real() : socket.of(real())))

  function giveBack(): void {
    own.restore()
    request.restore()
    socket.reveal()
    hidden.lift()
    request.lift()
  }
  return {
    ended,
    release(extra) {
      giveBack()
      sendCaptured(res, { end: state.end, extra, buffer, trailers: state.trailers })
    },
    replace(answer) {
      giveBack()
      if (res.headersSent || res.destroyed === true) return
      resetHeaders(res, before)
      sendAnswer(res, answer)
    },
  }
}

interface State {
  end: CaptureEnd | undefined
  /** Finished and closed, as far as the handler can tell. */
  closed: boolean
  trailers: Trailers | undefined
  /** Node itself is writing a 1xx: it needs the real socket. */
  live: boolean
}

interface Flags {
  readonly buffer: ResponseBuffer
  isClosed(): boolean
  isHeadSent(): boolean
}

function layFlags(own: Overrides, { buffer, isClosed, isHeadSent }: Flags): void {
  own.value('destroyed', isClosed)
  own.value('closed', isClosed)
  own.value('headersSent', isHeadSent)
  own.value('writableEnded', () => buffer.ended)
  own.value('finished', () => buffer.ended)
  own.value('writableFinished', () => buffer.finished)
  own.value('writableNeedDrain', () => buffer.needsDrain)
  own.value('writableLength', () => 0)
}

interface Writes {
  readonly buffer: ResponseBuffer
  readonly state: State
  breakOff(cause: unknown): void
  whole(): CaptureEnd
}

function layWrites(res: NodeResponse, own: Overrides, { buffer, state, breakOff, whole }: Writes): void {
  own.method('destroy', (error?: unknown) => {
    if (!buffer.ended) breakOff(error)
    return res
  })
  own.method('write', (...args: unknown[]) => buffer.write(args[0], args[1], args[2]))
  own.method('end', (...args: unknown[]) => {
    if (buffer.end(args[0], args[1], args[2])) state.end ??= whole()
    return res
  })
  own.method('addTrailers', (trailers: Trailers) => {
    // After the end they come too late, as without Latchkey.
    if (!buffer.ended) state.trailers = trailers
  })
  own.method('cork', () => {})
  own.method('uncork', () => {})
  for (const name of liveMethods) {
    const live = own.original(name)
    if (live === undefined) continue
    own.method(name, (...args: unknown[]) => {
      state.live = true
      try {
        return live(...args)
      } finally {
        state.live = false
      }
    })
  }
}

function endOf(
  res: NodeResponse,
  { before, buffer, state }: { before: Header[]; buffer: ResponseBuffer; state: State },
): CaptureEnd {
  const status = res.statusCode
  if (state.trailers !== undefined) return { kind: 'unreplayable', status, why: 'the response has trailers' }
  if (bodiless.has(status)) return whole(res, before, new Uint8Array())
  const declared = res.getHeader('content-length')
  if (declared !== undefined && Number(declared) !== buffer.byteLength) {
    return {
      kind: 'broken',
      error: new Error(`the response declared ${String(declared)} bytes and had ${buffer.byteLength}`),
    }
  }
  return whole(res, before, buffer.bytes())
}

function whole(res: NodeResponse, before: Header[], body: Uint8Array): CaptureEnd {
  return { kind: 'whole', response: { status: res.statusCode, headers: addedHeaders(before, headersOf(res)), body } }
}

interface ToSend {
  readonly end: CaptureEnd | undefined
  readonly extra: readonly Header[]
  readonly buffer: ResponseBuffer
  readonly trailers: Trailers | undefined
}

function sendCaptured(res: NodeResponse, { end, extra, buffer, trailers }: ToSend): void {
  // The client left: the answer is stored, and there is nobody to send it to.
  if (res.destroyed === true || res.headersSent) return
  if (end === undefined || end.kind === 'broken') return void res.destroy(end?.error)
  if (end.kind === 'unreplayable' && trailers === undefined) return
  setHeaders(res, mergeHeaders(headersOf(res), extra))
  if (trailers !== undefined) {
    // Trailers need chunks, which Node chooses when bytes come before the end.
    res.write(buffer.bytes())
    res.addTrailers?.(trailers)
    return void res.end()
  }
  res.end(buffer.bytes())
}

/** Hides the disconnect on the request, whose body has been read by now. */
function hideRequest(
  req: NodeRequest | undefined,
  standIn: (socket: unknown) => unknown,
): { restore(): void; lift(): void } {
  if (req === undefined) return { restore() {}, lift() {} }
  const hidden = veil(req, ['close', 'aborted', 'error'])
  const own = overrides(req)
  own.hide(sharedListener)
  own.value('aborted', () => false)
  own.value('destroyed', () => false)
  if (Object.hasOwn(req, 'socket')) own.value('socket', socket => standIn(socket()))
  return { restore: () => own.restore(), lift: () => hidden.lift() }
}

/** The attempt behind a capture. `error`: what the framework rendered it from, if it came from a throw. */
export function attemptOfCapture(end: CaptureEnd, error?: unknown): Attempt {
  switch (end.kind) {
    case 'whole':
      return attemptOf(end.response, error)
    case 'unreplayable':
      return end
    case 'broken':
      return { kind: 'threw', error: error ?? end.error }
  }
}

function asError(cause: unknown): Error {
  if (cause instanceof Error) return cause
  return nodeError(Error, 'ERR_STREAM_PREMATURE_CLOSE', 'the response was destroyed before it ended')
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>(settle => (resolve = settle))
  return { promise, resolve }
}

export { sendAnswer }

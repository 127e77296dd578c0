/**
 * Captures a response on Node's own response object, below every framework.
 *
 * From the start until `release` or `replace` nothing but 1xx reaches the client, and the handler sees a response that behaves as
 * without Latchkey. Everything is held in memory, also what is too large to be stored, because the outcome must be durable before the
 * client sees its first byte, and the first client gets the answer whole.
 */
import { OutgoingMessage, ServerResponse } from 'node:http'
import type { Attempt } from '../../engine/answer.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import { attemptOf, type Exchange } from '../exchange/exchange.ts'
import { captureDetached, detachedFrom } from './detached-capture.ts'
import type { Http1Response, NodeRequest, NodeResponse } from './driver.ts'
import { canHold, giveBack, type Held, hold } from './held-response.ts'
import {
  bodySent,
  type CaptureEnd,
  headersSent,
  sendAnswer,
  sendBody,
  setHeaders,
  trailersOf,
  wholeOutput,
} from './response.ts'

export interface Capture {
  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  readonly ended: Promise<CaptureEnd>
  /** Gives the response back and sends what was captured, with these headers added. A broken one ends the connection. */
  release(extra: readonly Header[]): void
  /** Gives the response back as it was at the start and sends this instead. Nothing of the handler's head stays. */
  replace(answer: RenderedAnswer): void
}

/** Start it right before the handler runs. With `req`, the client's disconnect is hidden from the handler there as well. */
export function captureResponse(res: NodeResponse, req?: NodeRequest): Capture {
  if (!canHold || !isHttp1(res) || res.finished) {
    // An operation inside another one's handler: that handler works on a response of its own already.
    const own = detachedFrom(res)
    return own === undefined ? captureDetached(res, req) : captureResponse(own)
  }
  let resolve: (end: CaptureEnd) => void = () => {}
  const ended = new Promise<CaptureEnd>(settled => (resolve = settled))
  const held = hold(res, req, resolve)
  return {
    ended,
    release(extra) {
      giveBack(held)
      if (!res._closed && !held.isHijacked) sendHeld(held, extra)
    },
    replace(answer) {
      giveBack(held)
      if (!res._closed && !held.isHijacked) sendInstead(held, answer)
    },
  }
}

function isHttp1(res: NodeResponse): res is Http1Response {
  return res instanceof ServerResponse
}

function sendHeld(held: Held, extra: readonly Header[]): void {
  const { res, end, hasBegun, hooks } = held
  if (end === undefined || end.kind === 'broken') return void res.destroy(end?.error)
  if (hasBegun || (hooks === undefined && extra.length === 0)) send(held)
  else sendAgain(held, extra)
}

/** Hands what was captured to Node, which writes it now or when the connection is this response's. */
function send({ res, end, hasBegun, output, interim, socket }: Held): void {
  const entries = hasBegun || end?.kind !== 'whole' ? output : wholeOutput(res, output, end.response.body)
  const last = entries.pop()
  if (last !== undefined) entries.push({ ...last, callback: error => void (error ?? res.emit('finish')) })
  const bytes = entries.reduce((sum, { data }) => sum + data.length, 0)
  res.outputData.push(...interim, ...entries)
  res.outputSize += bytes
  res._onPendingData(bytes)
  // A capture around this one learns of it from the call above.
  if (socket.isNested) return
  res._flush()
  socket.uncorkReal()
}

/** Through the methods of outer middleware, which may add to the answer or change it. */
function sendAgain(held: Held, extra: readonly Header[]): void {
  const { res, output } = held
  const { statusCode, statusMessage } = res
  const [headers, body, trailers] = [headersSent(res), bodySent(res, output), trailersOf(res)]
  restart(held)
  res.statusCode = statusCode
  res.statusMessage = statusMessage
  setHeaders(res, mergeHeaders(headers, extra))
  sendBody(res, body, trailers)
}

function sendInstead(held: Held, answer: RenderedAnswer): void {
  const { res } = held
  // The client has part of an answer, which cannot be taken back.
  if (held.hasBegun) return void res.destroy()
  restart(held)
  setHeaders(res, held.before)
  sendAnswer(res, answer)
}

/** Makes the response what it was when the capture started, except for its headers: it has none. */
function restart({ res, start, interim }: Held): void {
  const { socket, _onPendingData, useChunkedEncodingByDefault, _keepAliveTimeout, maxRequestsOnConnectionReached } = res
  const kept = { _onPendingData, useChunkedEncodingByDefault, _keepAliveTimeout, maxRequestsOnConnectionReached }
  // Node's own constructor, so that nothing of the handler's is forgotten. It is a function, and leaves listeners alone.
  Reflect.apply(OutgoingMessage, res, [{ highWaterMark: res.writableHighWaterMark }])
  Object.assign(res, kept, start)
  res.socket = socket
  for (const entry of interim) res.outputData.push(entry)
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

/** The answer of a handler, held back until the exchange has decided what the client gets. */
export interface HeldAnswer {
  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  readonly ended: Promise<CaptureEnd>
  /**
   * Set it when the handler threw after it had answered, and that answer does not hold: the rows of an atomic operation are rolled
   * back. The client gets a 500 instead.
   */
  isVoid: boolean
  /** `replaced`: the client got another answer than the handler's. */
  readonly sent: 'no' | 'released' | 'replaced'
  /** How the handler ended. `error`: what the answer was rendered from, if the handler threw. */
  attempt(end: CaptureEnd, error: unknown): Attempt
  /** Sends the answer before it is stored, for a framework that answered on behalf of a handler that still runs. */
  sendNow(): void
  /** Sends what the exchange decided, or a 500 where it failed and there is no result. */
  conclude(result?: Exchange): void
}

/**
 * Call it right before the handler runs. `over` completes an answer of ours where the framework keeps headers beside the response: see
 * `answerOver`.
 */
export function holdAnswer(
  res: NodeResponse,
  req: NodeRequest,
  over: (answer: RenderedAnswer) => RenderedAnswer = answer => answer,
): HeldAnswer {
  const capture = captureResponse(res, req)
  const held: { -readonly [Name in keyof HeldAnswer]: HeldAnswer[Name] } = {
    ended: capture.ended,
    isVoid: false,
    sent: 'no',
    attempt: (end, error) => (held.isVoid ? { kind: 'threw', error } : attemptOfCapture(end, error)),
    sendNow() {
      held.sent = 'released'
      capture.release([])
    },
    conclude(result) {
      if (held.sent !== 'no') return
      if (result?.kind === 'release' && !held.isVoid) {
        held.sent = 'released'
        return capture.release(result.headers)
      }
      held.sent = 'replaced'
      capture.replace(over(result?.kind === 'send' ? result.answer : serverError))
      // A handler whose transaction timed out may still be writing. Its errors must not end the process.
      res.on('error', () => {})
    },
  }
  return held
}

const serverError: RenderedAnswer = { status: 500, headers: [], body: new Uint8Array() }

/** A failure that was answered on behalf of a handler that may still run: a retry must not run beside it. */
export function hasFailed(end: CaptureEnd): boolean {
  if (end.kind === 'broken') return true
  return (end.kind === 'whole' ? end.response.status : end.status) >= 500
}

/** What a handler threw, as an error: frameworks take undefined and null for no error. */
export function thrownError(thrown: unknown): unknown {
  return thrown ?? new Error('the handler threw undefined or null')
}

export { sendAnswer }
export type { CaptureEnd }

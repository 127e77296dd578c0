/**
 * Captures a response on Node's own response object, below every framework.
 *
 * From the start until `release` or `replace` nothing but 1xx reaches the client, and the handler sees a response that behaves as
 * without Latchkey. What is held is bounded: a handler that writes more than is stored, or a stream of events, has its response sent while
 * it writes, all but the piece that completes it.
 */
import { ServerResponse } from 'node:http'
import type { Attempt } from '../../engine/answer.ts'
import { engine } from '../../engine/internal.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import { attemptOf, type Exchange } from '../exchange/exchange.ts'
import type { LimitedOperation } from '../exchange/outcome-limit.ts'
import { captureDetached, detachedFrom } from './detached-capture.ts'
import type { Http1Response, NodeRequest, NodeResponse, OutputEntry } from './driver.ts'
import { canHold, giveBack, type Held, hold } from './held-response.ts'
import { restart } from './restart.ts'
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
  /** The client gets the response while the handler writes it. */
  readonly isStreaming: boolean
  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  readonly ended: Promise<CaptureEnd>
  /**
   * Gives the response back and sends what was captured, with these headers added, or what is left of a response that streams. A broken
   * one ends the connection.
   */
  release(extra: readonly Header[]): void
  /**
   * Gives the response back as it was at the start and sends this instead. Nothing of the handler's head stays. Of a response that
   * streams the client has a part, so its connection is ended.
   */
  replace(answer: RenderedAnswer): void
}

/**
 * Start it right before the handler runs. With `req`, the client's disconnect is hidden from the handler there as well. `bytesMax`: the
 * largest body that is held, `outcomeBytesMax` of the operation.
 */
export function captureResponse(res: NodeResponse, req?: NodeRequest, bytesMax: number = Infinity): Capture {
  if (!canHold || !isHttp1(res) || res.finished) {
    // An operation inside another one's handler: that handler works on a response of its own already.
    const own = detachedFrom(res)
    return own === undefined ? captureDetached(res, { req, bytesMax }) : captureResponse(own)
  }
  return new HeldCapture(hold(res, { req, bytesMax }))
}

class HeldCapture implements Capture {
  private readonly held: Held

  constructor(held: Held) {
    this.held = held
  }

  get ended(): Promise<CaptureEnd> {
    return this.held.ended
  }

  get isStreaming(): boolean {
    return this.held.streamed !== undefined
  }

  release(extra: readonly Header[]): void {
    const { held } = this
    giveBack(held)
    if (!held.res._closed && !held.isHijacked) sendHeld(held, extra)
  }

  replace(answer: RenderedAnswer): void {
    const { held } = this
    giveBack(held)
    if (!held.res._closed && !held.isHijacked) sendInstead(held, answer)
  }
}

function isHttp1(res: NodeResponse): res is Http1Response {
  return res instanceof ServerResponse
}

function sendHeld(held: Held, extra: readonly Header[]): void {
  const { end, hasBegun, hooks, streamed } = held
  if (end === undefined || end.kind === 'broken') return cutOff(held, end?.error)
  if (hasBegun || streamed !== undefined || (hooks === undefined && extra.length === 0)) send(held)
  else sendAgain(held, extra)
}

/** Hands what was captured to Node, which writes it now or when the connection is this response's. */
function send({ res, end, hasBegun, output, interim, socket }: Held): void {
  const body = end?.kind === 'whole' ? end.response.body : undefined
  const entries = hasBegun || body === undefined ? output : wholeOutput(res, output, body)
  const last = entries.pop() ?? nothing
  entries.push({ ...last, callback: error => void (error ?? res.emit('finish')) })
  const bytes = entries.reduce((sum, { data }) => sum + data.length, 0)
  res.outputData.push(...interim, ...entries)
  res.outputSize += bytes
  res._onPendingData(bytes)
  // A capture around this one learns of it from the call above.
  if (socket.isNested) return
  res._flush()
  socket.uncorkReal()
}

/** What is left of a response that streams and ends with its connection. */
const nothing: OutputEntry = { data: '', encoding: 'latin1', callback: null }

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
  if (held.hasBegun || held.streamed !== undefined) return cutOff(held)
  restart(held)
  setHeaders(res, held.before)
  sendAnswer(res, answer)
}

/** Ends the connection. The client must not take what it has for a whole answer. */
function cutOff({ res, socket, streamed }: Held, error?: Error): void {
  const endsWithConnection = !res.chunkedEncoding && res._contentLength === null
  if (streamed !== undefined && endsWithConnection) socket.resetReal()
  res.destroy(error)
}

/** The attempt behind a capture. `error`: what the framework rendered it from, if it came from a throw. */
export function attemptOfCapture(end: CaptureEnd, error?: unknown): Attempt {
  switch (end.kind) {
    case 'whole':
      return attemptOf(end.response, error)
    case 'unreplayable':
      return end
    case 'left':
      if (error !== undefined) return { kind: 'threw', error }
      return { kind: 'unreplayable', status: end.status, why: 'the client left the event stream' }
    case 'broken':
      return { kind: 'threw', error: error ?? end.error }
  }
}

export interface HoldAnswerOptions {
  /** Its `outcomeBytesMax` is the largest body that is held. */
  readonly operation: LimitedOperation
  /** Completes an answer of ours where the framework keeps headers beside the response: see `answerOver`. */
  readonly over?: (answer: RenderedAnswer) => RenderedAnswer
}

/** Call it right before the handler runs. */
export function holdAnswer(res: NodeResponse, req: NodeRequest, options: HoldAnswerOptions): HeldAnswer {
  const { outcomeBytesMax } = options.operation[engine].settings
  return new HeldAnswer(res, captureResponse(res, req, outcomeBytesMax), options.over)
}

/** The answer of a handler, held back until the exchange has decided what the client gets. */
export class HeldAnswer {
  /**
   * Set it when the handler threw after it had answered, and that answer does not hold: the rows of an atomic operation are rolled
   * back. The client gets a 500 instead.
   */
  isVoid = false
  private readonly res: NodeResponse
  private readonly capture: Capture
  private readonly over: HoldAnswerOptions['over']
  private told: 'no' | 'released' | 'replaced' = 'no'

  constructor(res: NodeResponse, capture: Capture, over: HoldAnswerOptions['over']) {
    this.res = res
    this.capture = capture
    this.over = over
  }

  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  get ended(): Promise<CaptureEnd> {
    return this.capture.ended
  }

  /** `replaced`: the client got another answer than the handler's. */
  get sent(): 'no' | 'released' | 'replaced' {
    return this.told
  }

  /** How the handler ended. `error`: what the answer was rendered from, if the handler threw. */
  attempt(end: CaptureEnd, error: unknown): Attempt {
    return this.isVoid ? { kind: 'threw', error } : attemptOfCapture(end, error)
  }

  /** Sends the answer before it is stored, for a framework that answered on behalf of a handler that still runs. */
  sendNow(): void {
    this.told = 'released'
    this.capture.release([])
  }

  /** Sends what the exchange decided, or a 500 where it failed and there is no result. */
  conclude(result?: Exchange): void {
    const { capture, over, res } = this
    if (this.told !== 'no') return
    if (result?.kind === 'release' && !this.isVoid && !isUnmarked(capture, result)) {
      this.told = 'released'
      return capture.release(result.headers)
    }
    this.told = 'replaced'
    const answer = result?.kind === 'send' ? result.answer : serverError
    capture.replace(over === undefined ? answer : over(answer))
    // A handler whose transaction timed out may still be writing. Its errors must not end the process.
    res.on('error', () => {})
  }
}

/** What the store did not take is sent with a mark, and it is too late to mark a response that streams. */
function isUnmarked({ isStreaming }: Capture, { stored }: Extract<Exchange, { kind: 'release' }>): boolean {
  return isStreaming && stored === 'failed'
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

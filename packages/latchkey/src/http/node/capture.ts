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
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import { attemptOf } from '../exchange/exchange.ts'
import { coverSharedListener, coverSocket, state } from './covered.ts'
import { coverRequest } from './hide-disconnect/request.ts'
import { breakOff, type CaptureEnd, type Held, type LaidResponse, settle, showPlain } from './held-response.ts'
import { hiddenSocket } from './hide-disconnect/socket.ts'
import { layOver } from './laid-response.ts'
import type { NodeRequest, NodeResponse } from './driver.ts'
import { takeAway } from './overlay.ts'
import { bytesOf, responseBuffer } from './response-buffer.ts'
import { endWith, headersOf, resetHeaders, sendAnswer, setHeaders } from './response-head.ts'
import { liftVeil, veil } from './hide-disconnect/events.ts'

export interface Capture {
  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  readonly ended: Promise<CaptureEnd>
  /** Gives the response back and sends what was captured, with these headers added. A broken one ends the connection. */
  release(extra: readonly Header[]): void
  /** Gives the response back as it was at the start and sends this instead. Nothing of the handler's head stays. */
  replace(answer: RenderedAnswer): void
}

/** Start it right before the handler runs. With `req`, the client's disconnect is hidden from the handler there too. */
export function captureResponse(res: NodeResponse, req?: NodeRequest): Capture {
  let resolve: (end: CaptureEnd) => void = () => {}
  const ended = new Promise<CaptureEnd>(settled => (resolve = settled))
  const held = hold(res, resolve)
  const uncoverListener = coverSharedListener(res)
  const request = req === undefined ? undefined : coverRequest(req, held.socket)

  function giveBack(): void {
    letGo(held)
    uncoverListener()
    request?.restore()
    held.socket.reveal()
    liftVeil(held.veil)
    request?.lift()
  }
  return {
    ended,
    release(extra) {
      giveBack()
      sendHeld(held, extra)
    },
    replace(answer) {
      giveBack()
      if (res.headersSent || res.destroyed === true) return
      resetHeaders(res, held.before)
      sendAnswer(res, answer)
    },
  }
}

function hold(res: LaidResponse, resolve: (end: CaptureEnd) => void): Held {
  const isPlain = Object.hasOwn(res, 'destroyed')
  const outer = res[state]
  // These two stay with the response: what comes and goes is added behind them, and leaves no gap.
  res[state] = outer
  if (isPlain) res.statusCode = Number(res.statusCode)
  const socket = hiddenSocket({
    hijacked: () =>
      settle(held, { kind: 'unreplayable', status: res.statusCode, why: 'the handler wrote to the socket itself' }),
    destroyed: cause => breakOff(held, cause),
  })
  const held: Held = {
    target: res,
    before: headersOf(res),
    buffer: responseBuffer(res.writableHighWaterMark),
    veil: veil(res, ['finish', 'prefinish', 'close']),
    outer,
    laid: layOver(res, isPlain),
    isPlain,
    realDestroyed: res.destroyed === true,
    headSent: false,
    end: undefined,
    closed: false,
    trailers: undefined,
    socket,
    uncoverSocket: coverSocket(res, socket),
    resolve,
  }
  res[state] = held
  showPlain(held)
  return held
}

function letGo(held: Held): void {
  const { target, isPlain, realDestroyed, outer } = held
  held.uncoverSocket()
  takeAway(target, held.laid)
  target[state] = outer
  if (!isPlain) return
  target.destroyed = realDestroyed
  target.finished = false
}

function sendHeld({ target, end, buffer, trailers }: Held, extra: readonly Header[]): void {
  // The client left: the answer is stored, and there is nobody to send it to.
  if (target.destroyed === true || target.headersSent) return
  if (end === undefined || end.kind === 'broken') return void target.destroy(end?.error)
  if (end.kind === 'unreplayable' && trailers === undefined) return
  if (extra.length > 0) setHeaders(target, mergeHeaders(headersOf(target), extra))
  if (trailers !== undefined) {
    // Trailers need chunks, which Node chooses when bytes come before the end.
    target.write(bytesOf(buffer))
    target.addTrailers?.(trailers)
    return void target.end()
  }
  endWith(target, bytesOf(buffer))
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

export { sendAnswer }
export type { CaptureEnd }

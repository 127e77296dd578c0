/** One request on a covered route: claimed in the last `preHandler`, captured on the raw response, answered when it is stored. */
import type { Attempt } from '../../engine/answer.ts'
import type { Execution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import { isStored } from '../../engine/rules/judge.ts'
import type { Operation } from '../../engine/operation.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { nodeView } from '../node/request.ts'
import { attemptOfCapture, type Capture, type CaptureEnd, captureResponse } from '../node/capture.ts'
import { type Exchange, exchange } from '../exchange/exchange.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import { addedHeaders } from '../exchange/exchange.ts'
import type { BodyTap } from './body-tap.ts'
import type { ReplyShape, RequestShape } from './driver.ts'
import { layAnswer, replyHeaders } from './reply-head.ts'

export interface Visit {
  readonly body: BodyTap
  stage: Stage
  /** What the framework's error handler was given. */
  error: unknown
  hijacked: boolean
  handlerEnded: boolean
  /** Fulfils when the handler itself has ended, in whatever way. Its response may end earlier or later. */
  handler: Promise<void>
  /** Called with what the handler threw. */
  threw(error: unknown): void
}

export type Stage =
  | { readonly kind: 'arrived' }
  /** No claim is held, and none is needed: the handler runs as if Latchkey were not there. */
  | { readonly kind: 'passed' }
  | { readonly kind: 'running'; readonly execution: Execution }
  /** Latchkey answers; the handler must not run. */
  | { readonly kind: 'answered'; readonly answer: RenderedAnswer }

/** On the request itself: a table of all requests would be work for the garbage collector. */
const ofRequest: unique symbol = Symbol('latchkey: visit')

interface Visited {
  [ofRequest]?: Visit
}

export function openVisit(request: RequestShape & Visited, body: BodyTap): void {
  request[ofRequest] = {
    body,
    stage: { kind: 'arrived' },
    error: undefined,
    hijacked: false,
    handlerEnded: true,
    handler: Promise.resolve(),
    threw() {},
  }
}

export function visitOf(request: RequestShape & Visited): Visit | undefined {
  return request[ofRequest]
}

export interface Inbound<X extends Execution> {
  readonly operation: Operation<X, unknown>
  readonly request: RequestShape
  readonly reply: ReplyShape
}

/**
 * Fulfils when Fastify may go on to the handler, and never when Latchkey answers: a hook that ends after `reply.send` hands the
 * request to the handler if the client has left meanwhile, because Fastify then takes the reply for unsent.
 */
export async function claim<X extends Execution>(visit: Visit, inbound: Inbound<X>): Promise<void> {
  const { operation, request, reply } = inbound
  const before = replyHeaders(reply)
  let begin: (running: Running) => void = () => {}
  const begun = new Promise<Running>(resolve => (begin = resolve))
  const view = nodeView(request.raw, request, () => Promise.resolve(visit.body.read(request.raw)))
  const ending = exchange(operation, view, execution => {
    visit.stage = { kind: 'running', execution }
    const capture = captureResponse(reply.raw, request.raw)
    noteHijack(visit, reply)
    const running: Running = { capture, before, reply, released: false, answerIsVoid: false }
    begin(running)
    return attempt(visit, operation, running)
  })
  const first = await Promise.race([begun, ending])
  if ('capture' in first) return void conclude(first, ending, request)
  if (first.kind === 'send') return answer(visit, reply, first.answer)
  visit.stage = { kind: 'passed' }
}

interface Running {
  readonly capture: Capture
  /** Set by the application's hooks before the claim: they run again for a replay. */
  readonly before: readonly Header[]
  readonly reply: ReplyShape
  released: boolean
  /** The handler threw when its answer was wholly given, and the rows that answer speaks of were rolled back. */
  answerIsVoid: boolean
}

function noteHijack(visit: Visit, reply: ReplyShape): void {
  const { hijack } = reply
  reply.hijack = () => {
    visit.hijacked = true
    return Reflect.apply(hijack, reply, [])
  }
}

async function attempt<X extends Execution>(
  visit: Visit,
  operation: Operation<X, unknown>,
  running: Running,
): Promise<Attempt> {
  let late: unknown
  const gaveUp = new Promise<Extract<Attempt, { kind: 'threw' }>>(resolve => {
    visit.threw = error => {
      // Fastify does not answer for a hijacked reply whose handler threw, so the response may never end.
      if (visit.hijacked) resolve({ kind: 'threw', error })
      late = error ?? new Error('the handler threw nothing')
      running.answerIsVoid = operation.kind === 'atomic' && running.reply.raw.writableEnded
    }
  })
  const end = await Promise.race([running.capture.ended, gaveUp])
  if (end.kind === 'threw') return end
  if (isTimeout(visit.error) && !visit.handlerEnded) {
    // Fastify answered for a handler that still runs. The client is not kept waiting, but the claim and the transaction are held
    // until the handler has ended: a retry must not run beside it.
    running.released = true
    running.capture.release([])
    await visit.handler
  }
  // An answer may be given before the handler has ended: until then its rows are not complete, and after a failure a retry would
  // run beside it.
  if (operation.kind === 'atomic' || !isGood(end)) await visit.handler
  if (running.answerIsVoid) return { kind: 'threw', error: late }
  if (end.kind !== 'whole') return attemptOfCapture(end, visit.error)
  const { status, headers, body } = end.response
  if (visit.hijacked && visit.error === undefined && isStored(status, operation[engine].settings)) {
    return { kind: 'unreplayable', status, why: 'the handler took the reply over with reply.hijack()' }
  }
  const response = { status, headers: addedHeaders(running.before, headers), body }
  return attemptOfCapture({ kind: 'whole', response }, visit.error)
}

function isGood(end: CaptureEnd): boolean {
  if (end.kind === 'broken') return false
  return (end.kind === 'whole' ? end.response.status : end.status) < 500
}

function isTimeout(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'FST_ERR_HANDLER_TIMEOUT'
}

/** In place of an answer that the handler had given before it threw, and whose rows were rolled back. */
const nothingHappened = { status: 500, headers: [], body: new Uint8Array() }

async function conclude(running: Running, ending: Promise<Exchange>, request: RequestShape): Promise<void> {
  const { capture, before } = running
  try {
    const result = await ending
    if (running.released) return
    if (result.kind === 'release' && running.answerIsVoid) return capture.replace(over(before, nothingHappened))
    if (result.kind === 'release') return capture.release(result.headers)
    if (result.kind === 'send') return capture.replace(over(before, result.answer))
  } catch (error) {
    request.log.error({ err: error }, 'Latchkey could not conclude the request')
    if (!running.released) capture.replace(over(before, nothingHappened))
  }
}

/** Fastify's own headers are not on the raw response yet, and the answer goes there. */
function over(before: readonly Header[], answer: RenderedAnswer): RenderedAnswer {
  const kept = before.filter(([name]) => !name.toLowerCase().startsWith('content-'))
  return { ...answer, headers: mergeHeaders(kept, answer.headers).map(([name, value]) => [name, value]) }
}

function answer(visit: Visit, reply: ReplyShape, rendered: RenderedAnswer): Promise<never> {
  sendReply(visit, reply, rendered)
  return new Promise(() => {})
}

/** Sends an answer of ours. What the application's `onSend` hooks make of its bytes is undone: those are the stored ones. */
export function sendReply(visit: Visit, reply: ReplyShape, rendered: RenderedAnswer): void {
  visit.stage = { kind: 'answered', answer: rendered }
  layAnswer(reply, rendered)
  reply.send(rendered.body.byteLength === 0 ? undefined : Buffer.from(rendered.body))
}

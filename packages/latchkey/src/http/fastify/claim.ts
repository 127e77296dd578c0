/** One request on a covered route: claimed in a `preHandler`, captured on the raw response, answered when it is stored. */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, rememberExecution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { Operation } from '../../engine/operation.ts'
import { isStored } from '../../engine/rules/judge.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { hasFailed, type HeldAnswer, holdAnswer, thrownError } from '../node/capture.ts'
import { addedHeaders, type Exchange, exchange } from '../exchange/exchange.ts'
import { nodeView } from '../node/request.ts'
import type { FastifyReplyLike, FastifyRequestLike } from './driver.ts'
import { answerOverReply, replyHeaders, sendReply } from './reply-head.ts'
import type { RequestState } from './request-state.ts'

export interface ClaimedRoute<X extends Execution> {
  readonly operation: Operation<X, unknown>
  readonly request: FastifyRequestLike
  readonly reply: FastifyReplyLike
}

/**
 * Fulfils when Fastify may continue to the handler, and never when Latchkey answers: a hook that ends after `reply.send` passes the
 * request to the handler if the client has left meanwhile, because Fastify then takes the reply for unsent.
 */
export async function claim<X extends Execution>(state: RequestState, route: ClaimedRoute<X>): Promise<void> {
  const { operation, request, reply } = route
  // Set by the application's hooks, which run again for a replay.
  const before = replyHeaders(reply)
  let begin: (held: HeldAnswer) => void = () => {}
  const begun = new Promise<HeldAnswer>(resolve => (begin = resolve))
  const view = nodeView(request.raw, request, () => state.body.read(request, reply))
  const exchanged = exchange(operation, view, execution => {
    state.stage = { kind: 'running', execution }
    rememberExecution(request, execution)
    const over = (answer: RenderedAnswer) => answerOverReply(before, answer)
    const held = holdAnswer(reply.raw, request.raw, { operation, over })
    noteHijack(state, reply)
    begin(held)
    return attempt(state, route, { held, before })
  })
  const first = await Promise.race([begun, exchanged])
  if ('ended' in first) return void conclude(first, exchanged, request)
  if (first.kind === 'send') {
    sendReply(state, reply, first.answer)
    return new Promise(() => {})
  }
  state.stage = { kind: 'passed' }
}

function noteHijack(state: RequestState, reply: FastifyReplyLike): void {
  const { hijack } = reply
  reply.hijack = () => {
    state.hijacked = true
    return Reflect.apply(hijack, reply, [])
  }
}

interface Held {
  readonly held: HeldAnswer
  readonly before: readonly Header[]
}

async function attempt<X extends Execution>(
  state: RequestState,
  { operation, reply }: ClaimedRoute<X>,
  { held, before }: Held,
): Promise<Attempt> {
  let late: unknown
  const gaveUp = new Promise<Extract<Attempt, { kind: 'threw' }>>(resolve => {
    state.threw = error => {
      // Fastify does not answer for a hijacked reply whose handler threw, so the response may never end.
      if (state.hijacked) resolve({ kind: 'threw', error })
      late = thrownError(error)
      held.isVoid = operation.kind === 'atomic' && reply.raw.writableEnded
    }
  })
  const end = await Promise.race([held.ended, gaveUp])
  if (end.kind === 'threw') return end
  if (isTimeout(state.error) && !state.handlerEnded) {
    // Fastify answered on behalf of a handler that still runs. The client need not wait, but the claim and the transaction are held
    // until the handler has ended: a retry must not run beside it.
    held.sendNow()
    await state.handler
  }
  // An answer may be given before the handler has ended: until then its rows are not complete, and after a failure a retry would
  // run beside it.
  if (operation.kind === 'atomic' || hasFailed(end)) await state.handler
  if (held.isVoid) return held.attempt(end, late)
  if (end.kind !== 'whole') return held.attempt(end, state.error)
  const { status, headers, body } = end.response
  if (state.hijacked && state.error === undefined && isStored(status, operation[engine].settings)) {
    return { kind: 'unreplayable', status, why: 'the handler took the reply over with reply.hijack()' }
  }
  const response = { status, headers: addedHeaders(before, headers), body }
  return held.attempt({ kind: 'whole', response }, state.error)
}

function isTimeout(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'FST_ERR_HANDLER_TIMEOUT'
}

async function conclude(held: HeldAnswer, exchanged: Promise<Exchange>, request: FastifyRequestLike): Promise<void> {
  try {
    held.conclude(await exchanged)
  } catch (error) {
    request.log.error({ err: error }, 'Latchkey could not conclude the request')
    held.conclude()
  }
}

/**
 * Fastify 5. Register the plugin before the routes, and wrap the handler:
 *
 *   await app.register(latchkeyFastify)
 *   app.post('/orders', { schema }, idempotent(operation, async (request, reply, { tx }) => …))
 *
 * Everything that Fastify runs before a handler (authentication, validation, every `preHandler`) runs before the claim. What is
 * stored is what leaves by the raw response, after the error handler, every `onSend` hook and the serializer.
 */
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { covers } from '../exchange/exchange.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import { readRoute } from '../exchange/route.ts'
import { nodeView } from '../node/request.ts'
import type { FastifyHandler, FastifyReplyLike, FastifyRequestLike, ReplyOf } from './driver.ts'
import { declareHandler, declarePreHandler, withoutPlugin } from './plugin.ts'
import { sendReply } from './reply-head.ts'
import { follow, stateOf } from './request-state.ts'

export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { executionOf } from '../../engine/execution.ts'
export type { FastifyAppLike, FastifyReplyLike, FastifyRequestLike, ReplyOf } from './driver.ts'
export { latchkeyFastify } from './plugin.ts'
export { statusOf } from './status.ts'

/**
 * A handler that runs once per key. It gets the execution (`tx`, `signal`, `downstreamKey` …) as its third argument; on a
 * request that is not covered (another method, or without a key where that is allowed) there is no claim behind it. It runs
 * as Fastify runs any handler: returned values, `reply.send`, streams, `reply.raw` and thrown errors are all captured. After
 * `reply.hijack()` the answer is not stored: a retry gets 410, and nothing runs again.
 */
export function idempotent<
  X extends Execution,
  Context,
  Result,
  Request extends FastifyRequestLike & Context = FastifyRequestLike & Context,
  Reply extends FastifyReplyLike = ReplyOf<Request>,
>(
  operation: Operation<X, Context>,
  handler: (request: Request, reply: Reply, execution: X) => Result,
): (request: Request, reply: Reply) => Result
/**
 * Phased, `app.post('/payments', { schema }, idempotent(pay, { input: request => request.body }))`: the definition is declared with
 * the operation. What it throws goes to Fastify's error handler, and a retry resumes after the last completed step. Its answers,
 * replayed or not, are sent as they are stored: no serializer, and no `onSend` hook changes their bytes.
 */
export function idempotent<
  Input,
  Context,
  Request extends FastifyRequestLike & Context = FastifyRequestLike & Context,
  Reply extends FastifyReplyLike = ReplyOf<Request>,
>(
  operation: DefinedOperation<Input, Context>,
  route: PhasedRoute<Request, NoInfer<Input>>,
): (request: Request, reply: Reply) => Promise<Reply>
/**
 * As middleware, `app.post('/orders', { preHandler: idempotent(operation) }, handler)`: the hooks behind it and the handler are covered.
 * The execution is `executionOf(request)`. Put it last among the route's `preHandler` hooks, so that what they refuse reserves nothing.
 */
export function idempotent<X extends Execution, Context>(
  operation: Operation<X, Context>,
): (request: FastifyRequestLike & Context, reply: FastifyReplyLike) => Promise<void>
export function idempotent<X extends Execution>(
  operation: Operation<X, unknown> | DefinedOperation<unknown, unknown>,
  given?: CoveredHandler<X> | PhasedRoute<FastifyRequestLike, unknown>,
): FastifyHandler {
  const declared = readRoute(operation, given as CoveredHandler<X> | PhasedRoute<unknown, unknown>) // its context is Fastify's request
  switch (declared.form) {
    case 'handler':
      return coveredHandler(declared.operation, declared.handler)
    case 'middleware':
      // The hooks give it only the requests of its own routes.
      return declarePreHandler(declared.operation as Operation<Execution, unknown>)
    case 'phased':
      return phasedHandler(declared.operation, declared.route)
  }
}

type CoveredHandler<X> = (request: FastifyRequestLike, reply: FastifyReplyLike, execution: X) => unknown

function coveredHandler<X extends Execution>(
  operation: Operation<X, unknown>,
  handler: CoveredHandler<X>,
): FastifyHandler {
  function covered(this: unknown, request: FastifyRequestLike, reply: FastifyReplyLike): unknown {
    const execution = grantedExecution(operation, request)
    // Fastify's handlers find their instance in `this`.
    return follow(stateOf(request), () => handler.call(this, request, reply, execution))
  }
  // The hooks give it only the requests of its own routes.
  return declareHandler(covered, operation as Operation<Execution, unknown>)
}

function grantedExecution<X extends Execution, C>(operation: Operation<X, C>, request: FastifyRequestLike): X {
  const stage = stateOf(request)?.stage
  // The claim of this very operation put it there.
  if (stage?.kind === 'running') return stage.execution as X
  const uncovered = stage === undefined && !covers(operation[engine].settings.methods, request.method)
  if (stage?.kind === 'passed' || uncovered) return uncoveredExecution(operation)
  throw withoutPlugin(operation.name)
}

/** The handler claims, because everything that Fastify runs before it may still refuse the request. */
function phasedHandler(
  operation: DefinedOperation<unknown, unknown>,
  route: PhasedRoute<unknown, unknown>,
): FastifyHandler {
  async function phased(request: FastifyRequestLike, reply: FastifyReplyLike): Promise<FastifyReplyLike> {
    const state = stateOf(request)
    if (state === undefined) throw withoutPlugin(operation.name)
    const view = nodeView(request.raw, request, () => state.body.read(request, reply))
    const answer = await exchangePhased(operation, view, route)
    // Fastify's handler timeout may have answered meanwhile. The outcome is stored, and the retry gets it.
    if (!reply.raw.headersSent) sendReply(state, reply, answer)
    return reply
  }
  return declareHandler(phased, operation)
}

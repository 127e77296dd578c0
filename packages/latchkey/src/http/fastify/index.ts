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
import { misconfigured } from '../../ports/errors.ts'
import { checkOperation } from '../exchange/route.ts'
import { covers } from '../exchange/exchange.ts'
import { checkPhased, isDefined, type PhasedRoute } from '../exchange/phased-route.ts'
import { tapBody } from './body-tap.ts'
import type {
  AppShape,
  OnError,
  OnSend,
  PreHandler,
  PreParsing,
  ReplyOf,
  ReplyShape,
  RequestShape,
  RouteShape,
} from './driver.ts'
import { answerPhased } from './phased.ts'
import { layAnswer } from './reply-head.ts'
import { claim, openVisit, type Visit, visitOf } from './request-state.ts'

export { corsHeaders } from '../../wire/headers.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export { statusOf } from './status.ts'
export type { AppShape, ReplyOf, ReplyShape, RequestShape, RouteShape } from './driver.ts'

const operations = new WeakMap<object, Operation<Execution, unknown> | DefinedOperation<unknown, unknown>>()
/** Handlers whose route has the hooks. */
const hooked = new WeakSet<object>()

/**
 * A handler that happens once per key. It gets the execution (`tx`, `signal`, `downstreamKey` …) as its third argument; on a
 * request that is not covered (another method, or without a key where that is allowed) there is no claim behind it. It runs
 * as Fastify runs any handler: returned values, `reply.send`, streams, `reply.raw` and thrown errors are all seen. After
 * `reply.hijack()` the answer is not kept: a retry is told so, and nothing runs again.
 */
export function idempotent<
  X extends Execution,
  Context,
  Result,
  Request extends RequestShape & Context = RequestShape & Context,
  Reply extends ReplyShape = ReplyOf<Request>,
>(
  operation: Operation<X, Context>,
  handler: (request: Request, reply: Reply, execution: X) => Result,
): (request: Request, reply: Reply) => Result
/**
 * Phased, `app.post('/payments', { schema }, idempotent(pay, { input: request => request.body }))`: the definition is declared with
 * the operation. What it throws goes to Fastify's error handler, and the retry goes on behind the steps that are finished. Its
 * answers, replayed or not, leave as they are stored: no serializer, and no `onSend` hook changes their bytes.
 */
export function idempotent<
  Input,
  Context,
  Request extends RequestShape & Context = RequestShape & Context,
  Reply extends ReplyShape = ReplyOf<Request>,
>(
  operation: DefinedOperation<Input, Context>,
  route: PhasedRoute<Request, NoInfer<Input>>,
): (request: Request, reply: Reply) => Promise<Reply>
export function idempotent<X extends Execution>(
  operation: Operation<X, unknown> | DefinedOperation<unknown, unknown>,
  given: Handler<X> | PhasedRoute<RequestShape, unknown>,
): (request: RequestShape, reply: ReplyShape) => unknown {
  if (isDefined(operation)) return phasedHandler(operation, given)
  checkOperation(operation)
  if (typeof given === 'object')
    throw misconfigured(`${operation.name}: only a phased or deferred operation takes { input }`)
  return coveredHandler(operation, given)
}

type Handler<X> = (request: RequestShape, reply: ReplyShape, execution: X) => unknown

function phasedHandler(
  operation: DefinedOperation<unknown, unknown>,
  given: unknown,
): (request: RequestShape, reply: ReplyShape) => Promise<ReplyShape> {
  // Looked at right away.
  const route = given as PhasedRoute<RequestShape, unknown>
  checkPhased(operation, route)
  async function phased(request: RequestShape, reply: ReplyShape): Promise<ReplyShape> {
    const visit = visitOf(request)
    if (visit === undefined) throw misconfigured(cure(operation.name))
    return answerPhased(operation, route, { visit, request, reply })
  }
  operations.set(phased, operation)
  return failEarly(phased, operation.name)
}

function coveredHandler<X extends Execution>(
  operation: Operation<X, unknown>,
  handler: Handler<X>,
): (request: RequestShape, reply: ReplyShape) => unknown {
  function covered(this: unknown, request: RequestShape, reply: ReplyShape): unknown {
    const execution = executionOf(operation, request)
    // Fastify's handlers find their instance in `this`.
    return follow(visitOf(request), () => handler.call(this, request, reply, execution))
  }
  // The hooks hand it only the requests of this handler's own routes.
  operations.set(covered, operation as Operation<Execution, unknown>)
  return failEarly(covered, operation.name)
}

/** The plugin. It adds nothing to routes whose handler is not wrapped in `idempotent`. */
export function latchkeyFastify(app: AppShape, _options: object, done: (error?: Error) => void): void {
  Reflect.apply(app.addHook, app, ['onRoute', cover])
  done()
}
// Fastify's own sign, the one fastify-plugin sets: without it the hooks would end with the plugin's own routes.
Object.assign(latchkeyFastify, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'latchkey',
})

function cover(route: RouteShape): void {
  const { handler } = route
  if (typeof handler !== 'function') return
  const operation = operations.get(handler)
  if (operation === undefined) return
  hooked.add(handler)
  const isCovered = [route.method].flat().some(method => covers(operation[engine].settings.methods, method))
  // A phased handler refuses what it does not cover, and needs its visit to do so.
  if (!isCovered && !isDefined(operation)) return
  // Last of each: after decompression, after authentication, over what other hooks made of a replay.
  route.preParsing = [route.preParsing ?? [], arriveWithin(operation[engine].settings.bodyBytesMax)].flat()
  route.onSend = [route.onSend ?? [], restore].flat()
  if (isDefined(operation)) return
  route.preHandler = [route.preHandler ?? [], claimFor(operation)].flat()
  route.onError = [noteError, route.onError ?? []].flat()
}

function arriveWithin(bodyBytesMax: number): PreParsing {
  return (request, _reply, payload, done) => {
    openVisit(request, tapBody(payload, bodyBytesMax))
    done()
  }
}

function claimFor(operation: Operation<Execution, unknown>): PreHandler {
  return async (request, reply) => {
    const visit = visitOf(request)
    if (visit !== undefined) await claim(visit, { operation, request, reply })
  }
}

const noteError: OnError = (request, _reply, error, done) => {
  const visit = visitOf(request)
  if (visit?.stage.kind === 'running') visit.error ??= error
  done()
}

/** A replay was stored after the application's `onSend` hooks; whatever they do to it a second time is undone. */
const restore: OnSend = (request, reply, payload, done) => {
  const stage = visitOf(request)?.stage
  if (stage?.kind !== 'answered') return done(null, payload)
  layAnswer(reply, stage.answer)
  // Null, because undefined means "as it was".
  done(null, stage.answer.body.byteLength === 0 ? null : Buffer.from(stage.answer.body))
}

function executionOf<X extends Execution, C>(operation: Operation<X, C>, request: RequestShape): X {
  const stage = visitOf(request)?.stage
  // The claim of this very operation put it there.
  if (stage?.kind === 'running') return stage.execution as X
  const uncovered = stage === undefined && !covers(operation[engine].settings.methods, request.method)
  if (stage?.kind === 'passed' || uncovered) return uncoveredExecution(operation)
  throw misconfigured(cure(operation.name))
}

function cure(name: string): string {
  return (
    `${name}: the route has no claim, so its handler would run unprotected. Register the plugin first ` +
    '(await app.register(latchkeyFastify)), and hand Fastify the very function that idempotent() gave you'
  )
}

/** Runs the handler as Fastify would, and tells the visit when it has ended. */
function follow<Result>(visit: Visit | undefined, run: () => Result): Result {
  if (visit?.stage.kind !== 'running') return run()
  try {
    const result = run()
    // Promises only: a query builder is thenable too, and would run its query a second time.
    if (result instanceof Promise) followPromise(visit, result)
    return result
  } catch (error) {
    visit.threw(error)
    throw error
  }
}

function followPromise(visit: Visit, result: Promise<unknown>): void {
  visit.handlerEnded = false
  const end = () => void (visit.handlerEnded = true)
  visit.handler = result.then(end, (error: unknown) => {
    end()
    visit.threw(error)
  })
}

/**
 * Fastify binds a route's handler when the route is added, after the `onRoute` hooks. So a missing plugin is found at start, and
 * not by the first request; should Fastify stop binding, `executionOf` still refuses every request.
 */
function failEarly<F extends (...args: never[]) => unknown>(handler: F, name: string): F {
  const bind = (self: unknown): unknown => {
    if (!hooked.has(handler)) throw misconfigured(cure(name))
    return Function.prototype.bind.call(handler, self)
  }
  return Object.defineProperty(handler, 'bind', { value: bind })
}

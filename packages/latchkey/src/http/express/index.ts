/** Express 4 and 5. Mount it after authentication, validation and the body parser, so that what they refuse reserves nothing. */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import type { DefinedOperation, GuardedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { type HeldAnswer, holdAnswer, sendAnswer, thrownError } from '../node/capture.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import { exchange } from '../exchange/exchange.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import { rememberExecution } from '../../engine/execution.ts'
import type { RequestView } from '../exchange/request.ts'
import { readRoute, reportFailure } from '../exchange/route.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { bodyOf, nodeView } from '../node/request.ts'
import type {
  ExpressErrorMiddleware,
  ExpressHandler,
  ExpressMiddleware,
  ExpressNext,
  ExpressRequest,
  ExpressResponse,
  ResponseOf,
} from './driver.ts'

export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { executionOf } from '../../engine/execution.ts'
export { captureBody, type CaptureBodyOptions, captureVerify } from './capture-body.ts'
export type {
  ExpressErrorMiddleware,
  ExpressHandler,
  ExpressMiddleware,
  ExpressNext,
  ExpressRequest,
  ExpressResponse,
  ResponseOf,
} from './driver.ts'

/**
 * As a handler, `app.post('/orders', auth, idempotent(operation, async (req, res, { tx }) => …))`: what it throws goes to the app's
 * error middleware, and what that renders is judged and stored. It has ended when its promise has settled and the response has ended.
 * On a request that is not covered (another method, or without a key where that is allowed) there is no claim behind the execution. The
 * types come from the scope's parameter; where that names none, annotate `req: Request, res: Response`.
 */
export function idempotent<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req>,
  handler: ExpressHandler<X, Req>,
): ExpressMiddleware<Req>
/**
 * Phased, `app.post('/payments', auth, idempotent(pay, { input: req => ({ ...req.body, account: req.account }) }))`: the definition is
 * declared with the operation. What it throws goes to the app's error middleware, and a retry resumes after the last completed step.
 */
export function idempotent<Input, Req extends ExpressRequest>(
  operation: DefinedOperation<Input, Req>,
  route: PhasedRoute<Req, NoInfer<Input>>,
): ExpressMiddleware<Req>
/**
 * As middleware, `app.post('/orders', auth, idempotent(operation), handler)`: for guarded operations. The handler finds its execution
 * with `executionOf(req)`. See also `rememberErrors`.
 */
export function idempotent<Req extends ExpressRequest>(operation: GuardedOperation<Req>): ExpressMiddleware<Req>
export function idempotent<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req> | DefinedOperation<unknown, Req>,
  given?: ExpressHandler<X, Req> | PhasedRoute<Req, unknown>,
): ExpressMiddleware<Req> {
  const declared = readRoute(operation, given)
  switch (declared.form) {
    case 'handler':
      return serve(declared.operation, declared.handler)
    case 'middleware':
      checkMiddleware(declared.operation)
      return serve(declared.operation)
    case 'phased':
      return (req, res, next) =>
        void answer(exchangePhased(declared.operation, expressView(req), declared.route), res, next)
  }
}

function checkMiddleware<X extends Execution, Req>({ kind, name }: Operation<X, Req>): void {
  if (kind !== 'atomic') return
  // Middleware does not see what a later handler throws: it would be rendered as a 4xx, and its rows committed.
  throw misconfigured(
    `${name}: an atomic operation needs its handler, so that a throw rolls its rows back. ` +
      'Write idempotent(operation, async (req, res, { tx }) => …)',
  )
}

/**
 * The status of phased and deferred work, for its own scope: `app.get('/operations/:id', auth, statusOf(latchkey))`, behind the same
 * authentication as the operations. Mount it where `http.statusPath` says.
 */
export function statusOf<Req extends ExpressRequest>(
  latchkey: StatusHost<Req>,
  options: StatusOptions<Req> = {},
): ExpressMiddleware<Req> {
  checkStatus(latchkey, options)
  return (req, res, next) => void answer(exchangeStatus(latchkey, expressView(req), options), res, next)
}

async function answer(exchanged: Promise<RenderedAnswer>, res: ExpressResponse, next: ExpressNext): Promise<void> {
  try {
    const rendered = await exchanged
    // A timeout of the app's may have answered meanwhile. The outcome is stored, and the retry gets it.
    if (!res.headersSent) sendAnswer(res, rendered)
  } catch (error) {
    next(thrownError(error))
  }
}

const cure =
  'The raw request body is no longer available and the parsed body is ambiguous. Mount captureBody() ' +
  'before the parser, or give the parser the hook verify: captureVerify.'

function expressView<Req extends ExpressRequest>(req: Req): RequestView<Req> {
  return nodeView(req, req, bytesMax => bodyOf(req, { raw: rawBodyOf(req), parsed: req.body, cure, bytesMax }))
}

/** Where serverless platforms leave the bytes of a body that they have read. */
function rawBodyOf(req: object): unknown {
  const raw: unknown = Reflect.get(req, 'rawBody')
  return raw instanceof Uint8Array ? raw : undefined
}

/** Without a handler, later ones do the work. */
function serve<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req>,
  handler?: ExpressHandler<X, Req>,
): ExpressMiddleware<Req> {
  return (req, res, next) => {
    // Express passes a request and its own response together.
    const run = (execution: X) => (handler === undefined ? next() : handler(req, res as ResponseOf<Req>, execution))
    let held: HeldAnswer | undefined
    exchange(operation, expressView(req), execution => {
      rememberExecution(req, execution)
      const rendered = watchErrors(req)
      // Last: what it lays over the request leaves first, and the request has its shape again.
      held = holdAnswer(res, req, { operation })
      return attempt({ operation, res, next, rendered, held }, () => run(execution))
    })
      .then(result => {
        if (result.kind === 'pass') return run(uncoveredExecution(operation))
        if (held !== undefined) return held.conclude(result)
        if (result.kind === 'send') sendAnswer(res, result.answer)
        return undefined
      })
      .catch((error: unknown) => {
        if (held === undefined) return next(thrownError(error))
        reportFailure(operation, 'an execution failed', error)
        return held.conclude()
      })
  }
}

interface Granted<X extends Execution, Req> {
  readonly operation: Operation<X, Req>
  readonly res: ExpressResponse
  readonly next: ExpressNext
  readonly rendered: RenderedError
  readonly held: HeldAnswer
}

/** Has ended when the handler has returned and its response has ended. No async function: every request comes by. */
function attempt<X extends Execution, Req extends ExpressRequest>(
  { operation, res, next, rendered, held }: Granted<X, Req>,
  run: () => unknown,
): Promise<Attempt> {
  const whenAnswered = () => held.ended.then(end => held.attempt(end, rendered.error))
  const whenThrown = (thrown: unknown) => {
    const error = thrownError(thrown)
    if (held.sent === 'replaced') {
      // Express would end the connection of a client that has been answered.
      reportFailure(operation, 'a handler threw after its response had been replaced', error)
    } else {
      rendered.error = error
      held.isVoid = operation.kind === 'atomic' && res.writableEnded
      next(error)
    }
    return whenAnswered()
  }
  try {
    return Promise.resolve(run()).then(whenAnswered, whenThrown)
  } catch (thrown) {
    return whenThrown(thrown)
  }
}

interface RenderedError {
  /** What the app's error middleware renders; undefined while the handler has not failed. */
  error: unknown
}

/** On the request itself: a WeakMap keyed by request costs GC time. */
const ofRequest: unique symbol = Symbol('latchkey: rendered error')

interface Watched {
  [ofRequest]?: RenderedError
}

/** Notes the errors of a request from now on: those that `res.sendFile` and `res.render` report, and those of `rememberErrors`. */
function watchErrors(req: ExpressRequest & Watched): RenderedError {
  const rendered: RenderedError = { error: undefined }
  req[ofRequest] = rendered
  const { next } = req
  if (next !== undefined) {
    req.next = error => {
      noteError(rendered, error)
      next(error)
    }
  }
  return rendered
}

/** `route` and `router` are not errors: Express leaves the route or the router for them. */
function noteError(rendered: RenderedError, error: unknown): void {
  if (error !== undefined && error !== null && error !== 'route' && error !== 'router') rendered.error = error
}

/**
 * Mount it before the app's own error middleware: `app.use(rememberErrors(), renderErrors)`. Express does not show middleware the errors
 * of later handlers. Without it, `idempotent(operation)` as middleware judges a failure by the rendered status alone, and
 * `notExecuted()` and `outcomeUnknown()` thrown by the handler have no effect. The handler form does not need it.
 */
export function rememberErrors(): ExpressErrorMiddleware {
  // Express recognises error middleware by its four parameters.
  return (error, req: Watched, _res, next) => {
    const rendered = req[ofRequest]
    if (rendered !== undefined) noteError(rendered, error)
    next(error)
  }
}

/**
 * Express 4 and 5. Mount it after authentication, validation and the body parser: what they refuse is not Latchkey's
 * business.
 */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { DefinedOperation, GuardedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { bodyOf } from '../node/body.ts'
import { nodeView } from '../node/request.ts'
import { attemptOfCapture, type Capture, captureResponse, sendAnswer } from '../node/capture.ts'
import { checkOperation } from '../exchange/route.ts'
import { exchange } from '../exchange/exchange.ts'
import { checkPhased, exchangePhased, isDefined, type PhasedRoute } from '../exchange/phased-route.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import type { RequestView } from '../exchange/request.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import type {
  ExpressHandler,
  ExpressMiddleware,
  ExpressNext,
  ExpressRequest,
  ExpressResponse,
  ResponseOf,
} from './driver.ts'
import { openVisit } from './request-state.ts'

export { corsHeaders } from '../../wire/headers.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
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
export { executionOf, rememberErrors } from './request-state.ts'

/**
 * As a handler, `app.post('/orders', auth, idempotent(operation, async (req, res, { tx }) => …))`: what it throws goes
 * to the app's error middleware, and what that renders is judged and stored. It has ended when its promise has settled
 * and the response has ended. On a request that is not covered (another method, or without a key where that is allowed)
 * there is no claim behind the execution. Its types come from the scope's parameter; where that names none, annotate `req: Request,
 * res: Response`.
 *
 * As middleware, `app.post('/orders', auth, idempotent(operation), handler)`: for guarded operations. The handler finds
 * its execution with `executionOf(req)`. See also `rememberErrors`.
 */
export function idempotent<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req>,
  handler: ExpressHandler<X, Req>,
): ExpressMiddleware<Req>
/**
 * Phased, `app.post('/payments', auth, idempotent(pay, { input: req => ({ ...req.body, account: req.account }) }))`: the
 * definition is declared with the operation. What it throws goes to the app's error middleware, and the retry goes on behind the
 * steps that are finished.
 */
export function idempotent<Input, Req extends ExpressRequest>(
  operation: DefinedOperation<Input, Req>,
  route: PhasedRoute<Req, NoInfer<Input>>,
): ExpressMiddleware<Req>
export function idempotent<Req extends ExpressRequest>(operation: GuardedOperation<Req>): ExpressMiddleware<Req>
export function idempotent<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req> | DefinedOperation<unknown, Req>,
  handler?: ExpressHandler<X, Req> | PhasedRoute<Req, unknown>,
): ExpressMiddleware<Req> {
  if (isDefined(operation)) return phasedRoute(operation, handler)
  checkOperation(operation)
  if (typeof handler === 'object')
    throw misconfigured(`${operation.name}: only a phased or deferred operation takes { input }`)
  if (handler === undefined && operation.kind === 'atomic') {
    // A throw of a later handler is not visible to middleware: it would be rendered as a 4xx, and its rows committed.
    throw misconfigured(
      `${operation.name}: an atomic operation needs its handler, so that a throw rolls its rows back. ` +
        'Write idempotent(operation, async (req, res, { tx }) => …)',
    )
  }
  return (req, res, next) => {
    // Express hands a request and its own response in together.
    const run = handler === undefined ? undefined : (x: X) => handler(req, res as ResponseOf<Req>, x)
    void serve(operation, { req, res, next, handler: run })
  }
}

function phasedRoute<Req extends ExpressRequest>(
  operation: DefinedOperation<unknown, Req>,
  given: unknown,
): ExpressMiddleware<Req> {
  // Looked at right away.
  const route = given as PhasedRoute<Req, unknown>
  checkPhased(operation, route)
  return (req, res, next) => void answerPhased(req, res).catch((error: unknown) => next(thrown(error)))

  async function answerPhased(req: Req, res: ExpressResponse): Promise<void> {
    const answer = await exchangePhased(operation, expressView(req), route)
    // A timeout of the app's may have answered meanwhile. The outcome is stored, and the retry gets it.
    if (!res.headersSent) sendAnswer(res, answer)
  }
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
  return (req, res, next) =>
    void exchangeStatus(latchkey, expressView(req), options).then(
      answer => res.headersSent || sendAnswer(res, answer),
      (error: unknown) => next(thrown(error)),
    )
}

interface Call<X, Req> {
  readonly req: Req
  readonly res: ExpressResponse
  readonly next: ExpressNext
  /** Absent in the middleware form: later handlers do the work. */
  readonly handler: ((execution: X) => unknown) | undefined
}

const cure =
  'Its raw bytes are gone, and what the parser made of it does not tell two requests apart. Mount captureBody() ' +
  'before the parser, or give the parser the hook verify: captureVerify.'

function expressView<Req extends ExpressRequest>(req: Req): RequestView<Req> {
  return nodeView(req, req, async bytesMax => bodyOf(req, { raw: rawBodyOf(req), parsed: req.body, cure, bytesMax }))
}

async function serve<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req>,
  call: Call<X, Req>,
): Promise<void> {
  const { req, res, next, handler } = call
  let run: Run | undefined
  try {
    const result = await exchange(operation, expressView(req), execution => {
      run = startRun(operation, call, execution)
      return run.attempt
    })
    switch (result.kind) {
      case 'pass':
        return void (handler === undefined ? next() : await handler(uncoveredExecution(operation)))
      case 'send':
        return run === undefined ? sendAnswer(res, result.answer) : run.replace(result.answer)
      case 'release':
        return run?.answerIsVoid() === true ? run.replace(nothingHappened) : run?.capture.release(result.headers)
    }
  } catch (error) {
    if (run === undefined) return next(thrown(error))
    operation[engine].shared.telemetry.report('an execution failed', { operation: operation.name, error })
    run.replace(nothingHappened)
  }
}

/** In place of an answer that the handler had given before it threw, and whose rows were rolled back. */
const nothingHappened = { status: 500, headers: [], body: new Uint8Array() }

interface Run {
  readonly capture: Capture
  readonly attempt: Promise<Attempt>
  answerIsVoid(): boolean
  replace(answer: RenderedAnswer): void
}

function startRun<X extends Execution, Req extends ExpressRequest>(
  operation: Operation<X, Req>,
  { req, res, next, handler }: Call<X, Req>,
  execution: X,
): Run {
  const { kind, name } = operation
  const { telemetry } = operation[engine].shared
  const visit = openVisit(req, execution)
  const capture = captureResponse(res, req)
  let answerIsVoid = false
  let replaced = false

  async function handle(): Promise<void> {
    if (handler === undefined) return next()
    try {
      await handler(execution)
    } catch (error) {
      // Express would end the connection of a client that was answered long ago.
      if (replaced) return telemetry.report('a handler failed after its time', { operation: name, error })
      visit.error = thrown(error)
      answerIsVoid = kind === 'atomic' && res.writableEnded
      next(visit.error)
    }
  }

  async function attempt(): Promise<Attempt> {
    await handle()
    const end = await capture.ended
    return answerIsVoid ? { kind: 'threw', error: visit.error } : attemptOfCapture(end, visit.error)
  }
  return {
    capture,
    attempt: attempt(),
    answerIsVoid: () => answerIsVoid,
    replace(answer) {
      replaced = true
      capture.replace(answer)
      // A handler whose transaction ran out of time may still be writing: nobody listens, and nothing may break.
      res.on('error', () => {})
    },
  }
}

/** Express takes a missing error for none and goes on to the next handler. */
function thrown(error: unknown): unknown {
  return error === undefined || error === null ? new Error('the handler threw nothing') : error
}

/** Where serverless platforms leave the bytes of a body that they have read. */
function rawBodyOf(req: object): unknown {
  const raw: unknown = Reflect.get(req, 'rawBody')
  return raw instanceof Uint8Array ? raw : undefined
}

/**
 * Koa. Mount it after authentication, validation and the body parser: what they refuse is not Latchkey's business.
 *
 * The answer is captured on Node's response, below Koa: only there is what outer middleware, an outer error handler and
 * Koa's own `respond` and `onerror` made of the context. So the middleware returns as soon as the handler has ended,
 * Koa goes on as always, and what it writes is held until it is stored.
 */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { bodyOf } from '../node/body.ts'
import { nodeView } from '../node/request.ts'
import { attemptOfCapture, type Capture, captureResponse, sendAnswer } from '../node/capture.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { checkOperation } from '../exchange/route.ts'
import { type Exchange, exchange } from '../exchange/exchange.ts'
import { checkPhased, exchangePhased, isDefined, type PhasedRoute } from '../exchange/phased-route.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import type { RequestView } from '../exchange/request.ts'
import type { KoaContext, KoaMiddleware, KoaNext } from './driver.ts'
import { hideSocketErrors } from './socket-errors.ts'

export { corsHeaders } from '../../wire/headers.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export { captureBody, type CaptureBodyOptions } from './capture-body.ts'
export type { KoaContext, KoaMiddleware, KoaNext } from './driver.ts'

export type KoaHandler<X, C> = (context: C, execution: X, next: KoaNext) => unknown

/**
 * As a handler, `router.post('/orders', idempotent(operation, async (ctx, { tx }) => …))`: it gets the execution beside
 * the context. On a request that is not covered (another method, or without a key where that is allowed) there
 * is no claim behind it. The context's type comes from the scope's parameter; where that names none, annotate `ctx: Context`.
 *
 * As middleware, `app.use(idempotent(operation))`: everything behind it is covered. The execution is
 * `ctx.state.latchkey`.
 */
export function idempotent<X extends Execution, C extends KoaContext>(
  operation: Operation<X, C>,
  handler?: KoaHandler<X, C>,
): KoaMiddleware<C>
/**
 * Phased, `router.post('/payments', idempotent(pay, { input: ctx => ({ ...ctx.request.body, account: ctx.state.account }) }))`: the
 * definition is declared with the operation. What it throws is thrown on to Koa, and the retry goes on behind the steps that are
 * finished.
 */
export function idempotent<Input, C extends KoaContext>(
  operation: DefinedOperation<Input, C>,
  route: PhasedRoute<C, NoInfer<Input>>,
): KoaMiddleware<C>
export function idempotent<X extends Execution, C extends KoaContext>(
  operation: Operation<X, C> | DefinedOperation<unknown, C>,
  handler?: KoaHandler<X, C> | PhasedRoute<C, unknown>,
): KoaMiddleware<C> {
  if (isDefined(operation)) return phasedRoute(operation, handler)
  checkOperation(operation)
  if (typeof handler === 'object')
    throw misconfigured(`${operation.name}: only a phased or deferred operation takes { input }`)
  return async (context, next) => {
    const covered = cover(operation, context, async execution => {
      context.state['latchkey'] = execution
      await (handler === undefined ? next() : handler(context, execution, next))
    })
    const first = await Promise.race([covered.handled, covered.concluded])
    if (first.kind === 'handled') {
      // Koa goes on with the answer, and nobody waits for the conclusion any more.
      covered.concluded.catch((error: unknown) => context.res.destroy(error instanceof Error ? error : undefined))
      return first.end
    }
    if (first.kind === 'concluded') return undefined
    return handler === undefined ? next() : handler(context, uncoveredExecution(operation), next)
  }
}

function phasedRoute<C extends KoaContext>(operation: DefinedOperation<unknown, C>, given: unknown): KoaMiddleware<C> {
  // Looked at right away.
  const route = given as PhasedRoute<C, unknown>
  checkPhased(operation, route)
  return async context => {
    const answer = await exchangePhased(operation, koaView(context), route)
    // A timeout of the app's may have answered meanwhile. The outcome is stored, and the retry gets it.
    if (context.res.headersSent) return
    context.respond = false
    sendAnswer(context.res, answer)
  }
}

/**
 * The status of phased and deferred work, for its own scope: `router.get('/operations/:id', statusOf(latchkey))`, behind the same authentication
 * as the operations. Mount it where `http.statusPath` says.
 */
export function statusOf<C extends KoaContext>(
  latchkey: StatusHost<C>,
  options: StatusOptions<C> = {},
): KoaMiddleware<C> {
  checkStatus(latchkey, options)
  return async context => {
    const answer = await exchangeStatus(latchkey, koaView(context), options)
    if (context.res.headersSent) return
    context.respond = false
    sendAnswer(context.res, answer)
  }
}

interface Covered {
  /** Once the handler was started; `end` settles as the handler does. Never settles where it is not. */
  readonly handled: Promise<{ readonly kind: 'handled'; readonly end: Promise<void> }>
  readonly concluded: Promise<{ readonly kind: 'concluded' | 'pass' }>
}

function cover<X extends Execution, C extends KoaContext>(
  operation: Operation<X, C>,
  context: C,
  handle: (execution: X) => Promise<void>,
): Covered {
  let run: Run | undefined
  let started: (end: Promise<void>) => void = () => {}
  const handled: Covered['handled'] = new Promise(resolve => {
    started = end => resolve({ kind: 'handled', end })
  })
  const concluded = exchange(operation, koaView(context), execution => {
    run = startRun(operation, context, () => handle(execution))
    started(run.handled)
    return run.attempt
  }).then(
    result => conclude(context, run, result),
    (error: unknown) => {
      // Before the handler ran it is Koa's to render. Afterwards Koa has gone on.
      if (run === undefined) throw error
      operation[engine].shared.telemetry.report('an execution failed', { operation: operation.name, error })
      return conclude(context, run, { kind: 'send', answer: nothingHappened })
    },
  )
  return { handled, concluded }
}

/** In place of an answer that the handler had given before it threw, and whose rows were rolled back. */
const nothingHappened = { status: 500, headers: [], body: new Uint8Array() }

function conclude(context: KoaContext, run: Run | undefined, result: Exchange): { kind: 'concluded' | 'pass' } {
  if (result.kind === 'pass') return { kind: 'pass' }
  run?.giveBack()
  if (result.kind === 'release') {
    if (run?.answerIsVoid() === true) replace(context, run, nothingHappened)
    else run?.capture.release(result.headers)
  } else if (run === undefined) {
    context.respond = false
    sendAnswer(context.res, result.answer)
  } else {
    replace(context, run, result.answer)
  }
  return { kind: 'concluded' }
}

function replace({ res }: KoaContext, run: Run, answer: RenderedAnswer): void {
  run.capture.replace(answer)
  // A handler whose transaction ran out of time may still be writing: nobody listens, and nothing may break.
  res.on('error', () => {})
}

interface Run {
  readonly capture: Capture
  readonly handled: Promise<void>
  readonly attempt: Promise<Attempt>
  giveBack(): void
  answerIsVoid(): boolean
}

function startRun<X extends Execution, C extends KoaContext>(
  { kind }: Operation<X, C>,
  context: C,
  handle: () => Promise<void>,
): Run {
  const giveBack = hideSocketErrors(context)
  const capture = captureResponse(context.res, context.req)
  let answerIsVoid = false
  const handled = handle()

  async function attempt(): Promise<Attempt> {
    const error = await handled.then(
      () => undefined,
      (reason: unknown) => {
        answerIsVoid = kind === 'atomic' && context.res.writableEnded
        return reason ?? new Error('the handler threw nothing')
      },
    )
    const end = await capture.ended
    return answerIsVoid ? { kind: 'threw', error } : attemptOfCapture(end, error)
  }
  return { capture, handled, attempt: attempt(), giveBack, answerIsVoid: () => answerIsVoid }
}

const cure =
  'Its raw bytes are gone, and what the parser made of it does not tell two requests apart. ' +
  'Mount captureBody() before the parser.'

function koaView<C extends KoaContext>(context: C): RequestView<C> {
  const { req, request, originalUrl } = context
  const body = async (bytesMax: number) =>
    bodyOf(req, { raw: Reflect.get(request, 'rawBody'), parsed: Reflect.get(request, 'body'), cure, bytesMax })
  const { method, rawHeaders } = req
  return nodeView({ method, rawHeaders, originalUrl }, context, body)
}

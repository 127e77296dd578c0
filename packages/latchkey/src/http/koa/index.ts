/**
 * Koa. Mount it after authentication, validation and the body parser, so that what they refuse reserves nothing.
 *
 * The answer is captured on Node's response, below Koa: only there is what outer middleware, an outer error handler and Koa's own
 * `respond` and `onerror` made of the context. So the middleware returns as soon as the handler has ended, Koa continues as always, and
 * what it writes is held until it is stored.
 */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { type HeldAnswer, holdAnswer, sendAnswer, thrownError } from '../node/capture.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import { type Exchange, exchange } from '../exchange/exchange.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import { rememberExecution } from '../../engine/execution.ts'
import type { RequestView } from '../exchange/request.ts'
import { readRoute, reportFailure } from '../exchange/route.ts'
import { bodyOf, nodeView } from '../node/request.ts'
import type { KoaContext, KoaMiddleware, KoaNext } from './driver.ts'
import { hideSocketErrors } from './socket-errors.ts'

export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { executionOf } from '../../engine/execution.ts'
export { captureBody, type CaptureBodyOptions } from './capture-body.ts'
export type { KoaContext, KoaMiddleware, KoaNext } from './driver.ts'

export type KoaHandler<X, C> = (context: C, execution: X, next: KoaNext) => unknown

/**
 * As a handler, `router.post('/orders', idempotent(operation, async (ctx, { tx }) => …))`: it gets the execution beside the context. On
 * a request that is not covered (another method, or without a key where that is allowed) there is no claim behind it. The context's type
 * comes from the scope's parameter; where that names none, annotate `ctx: Context`.
 *
 * As middleware, `app.use(idempotent(operation))`: everything behind it is covered. The execution is `executionOf(ctx)`.
 */
export function idempotent<X extends Execution, C extends KoaContext>(
  operation: Operation<X, C>,
  handler?: KoaHandler<X, C>,
): KoaMiddleware<C>
/**
 * Phased, `router.post('/payments', idempotent(pay, { input: ctx => ({ ...ctx.request.body, account: ctx.state.account }) }))`: the
 * definition is declared with the operation. What it throws is thrown to Koa, and a retry resumes after the last completed step.
 */
export function idempotent<Input, C extends KoaContext>(
  operation: DefinedOperation<Input, C>,
  route: PhasedRoute<C, NoInfer<Input>>,
): KoaMiddleware<C>
export function idempotent<X extends Execution, C extends KoaContext>(
  operation: Operation<X, C> | DefinedOperation<unknown, C>,
  given?: KoaHandler<X, C> | PhasedRoute<C, unknown>,
): KoaMiddleware<C> {
  const declared = readRoute(operation, given)
  switch (declared.form) {
    case 'handler': {
      const { handler } = declared
      return (context, next) => serve(declared.operation, context, execution => handler(context, execution, next))
    }
    case 'middleware':
      return (context, next) => serve(declared.operation, context, () => next())
    case 'phased':
      return async context =>
        answer(context, await exchangePhased(declared.operation, koaView(context), declared.route))
  }
}

/**
 * The status of phased and deferred work, for its own scope: `router.get('/operations/:id', statusOf(latchkey))`, behind the same
 * authentication as the operations. Mount it where `http.statusPath` says.
 */
export function statusOf<C extends KoaContext>(
  latchkey: StatusHost<C>,
  options: StatusOptions<C> = {},
): KoaMiddleware<C> {
  checkStatus(latchkey, options)
  return async context => answer(context, await exchangeStatus(latchkey, koaView(context), options))
}

function answer(context: KoaContext, rendered: RenderedAnswer): void {
  // A timeout of the app's may have answered meanwhile. The outcome is stored, and the retry gets it.
  if (context.res.headersSent) return
  context.respond = false
  sendAnswer(context.res, rendered)
}

async function serve<X extends Execution, C extends KoaContext>(
  operation: Operation<X, C>,
  context: C,
  handle: (execution: X) => unknown,
): Promise<unknown> {
  const covered = cover(operation, context, async execution => void (await handle(execution)))
  const first = await Promise.race([covered.handled, covered.concluded])
  if (first.kind === 'handled') {
    // Koa continues with the answer, and this middleware no longer waits for the conclusion.
    covered.concluded.catch((error: unknown) => context.res.destroy(error instanceof Error ? error : undefined))
    return first.end
  }
  return first.kind === 'pass' ? handle(uncoveredExecution(operation)) : undefined
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
  let running: Running | undefined
  let started: (end: Promise<void>) => void = () => {}
  const handled: Covered['handled'] = new Promise(resolve => {
    started = end => resolve({ kind: 'handled', end })
  })
  const concluded = exchange(operation, koaView(context), execution => {
    rememberExecution(context, execution)
    const showSocketErrors = hideSocketErrors(context)
    const held = holdAnswer(context.res, context.req, { operation })
    const end = handle(execution)
    running = { held, end, showSocketErrors }
    started(end)
    return attempt(operation, context, running)
  }).then(
    result => conclude(context, running, result),
    (error: unknown) => {
      // Before the handler ran, the error is Koa's to render. Afterwards Koa has continued.
      if (running === undefined) throw error
      reportFailure(operation, 'an execution failed', error)
      return conclude(context, running)
    },
  )
  return { handled, concluded }
}

interface Running {
  readonly held: HeldAnswer
  /** Settles as the handler does. */
  readonly end: Promise<void>
  showSocketErrors(): void
}

async function attempt<X extends Execution, C extends KoaContext>(
  { kind }: Operation<X, C>,
  { res }: C,
  { held, end }: Running,
): Promise<Attempt> {
  const error = await end.then(
    () => undefined,
    (thrown: unknown) => {
      held.isVoid = kind === 'atomic' && res.writableEnded
      return thrownError(thrown)
    },
  )
  return held.attempt(await held.ended, error)
}

/** Without a result: the exchange failed while the handler ran. */
function conclude(
  context: KoaContext,
  running: Running | undefined,
  result?: Exchange,
): { kind: 'concluded' | 'pass' } {
  if (result?.kind === 'pass') return { kind: 'pass' }
  running?.showSocketErrors()
  if (running !== undefined) running.held.conclude(result)
  else if (result?.kind === 'send') answer(context, result.answer)
  return { kind: 'concluded' }
}

const cure =
  'The raw request body is no longer available and the parsed body is ambiguous. Mount captureBody() before the parser.'

function koaView<C extends KoaContext>(context: C): RequestView<C> {
  const { req, request, originalUrl } = context
  const body = async (bytesMax: number) =>
    bodyOf(req, { raw: Reflect.get(request, 'rawBody'), parsed: Reflect.get(request, 'body'), cure, bytesMax })
  const { method, rawHeaders } = req
  return nodeView({ method, rawHeaders, originalUrl }, context, body)
}

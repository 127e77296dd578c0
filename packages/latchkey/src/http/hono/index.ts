/** Hono. Mount it after authentication and validation, so that what they refuse reserves nothing. */
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable } from '../../ports/option-kinds.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { answerOver } from '../adapter/answer-over.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import { rememberExecution } from '../../engine/execution.ts'
import { readRoute } from '../exchange/route.ts'
import { fetchAnswer, headersOf } from '../web/capture.ts'
import { exchangeFetch, type HandlerResponse } from '../web/exchange-fetch.ts'
import { hideDisconnect } from '../web/request.ts'
import type { HonoContext, HonoNext } from './driver.ts'
import { honoView } from './request.ts'

export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { executionOf } from '../../engine/execution.ts'
export type { HonoContext, HonoNext } from './driver.ts'

export interface HonoOptions<C> {
  /**
   * The function given to `app.onError`. With it, an error that the handler throws is rendered here, so that what is stored is what
   * the client gets. Required for guarded operations under `hold` and `store`: Hono does not show a handler what `app.onError` makes
   * of its errors, and that decides whether the key is held or the answer stored. Elsewhere the default is: errors with a `getResponse`
   * (HTTPException) are rendered by it; any other counts as a 5xx, stores nothing, and is thrown to `app.onError`. The middleware form
   * does not need it.
   */
  readonly onError?: (error: Error, context: C) => Response | Promise<Response>
}

const honoChecks: ChecksOf<HonoOptions<never>> = { onError: callable }

type HonoHandler<X, C> = (context: C, execution: X) => Response | Promise<Response>
type HonoMiddleware<C> = (context: C, next: HonoNext) => Promise<Response | undefined>

/**
 * As a handler, `app.post('/orders', idempotent(operation, async (c, { tx }) => …))`: the handler gets the execution beside the
 * context, whose type comes from `scope: (c: Context<Env>) => …`, or from an annotation where the scope takes none. On a request
 * that is not covered (another method, or without a key where that is allowed) there is no claim behind it.
 */
export function idempotent<X extends Execution, C extends HonoContext>(
  operation: Operation<X, C>,
  handler: (context: C, execution: NoInfer<X>) => Response | Promise<Response>,
  options?: HonoOptions<C>,
): (context: C) => Promise<Response>
/**
 * Phased, `app.post('/payments', idempotent(pay, { input: async c => ({ ...(await c.req.json()), account: c.get('account') }) }))`: the
 * definition is declared with the operation. What it throws goes to `app.onError`, and a retry resumes after the last completed step.
 */
export function idempotent<Input, C extends HonoContext>(
  operation: DefinedOperation<Input, C>,
  route: PhasedRoute<C, NoInfer<Input>>,
): (context: C) => Promise<Response>
/**
 * As middleware, `app.use('/orders', idempotent(operation))`: everything behind it is covered, as `app.onError` rendered it. The
 * execution is `executionOf(c)`.
 */
export function idempotent<X extends Execution, C extends HonoContext>(operation: Operation<X, C>): HonoMiddleware<C>
export function idempotent<X extends Execution, C extends HonoContext>(
  operation: Operation<X, C> | DefinedOperation<unknown, C>,
  given?: HonoHandler<X, C> | PhasedRoute<C, unknown>,
  options: HonoOptions<C> = {},
): HonoMiddleware<C> {
  const declared = readRoute(operation, given)
  checkOptions(operation.name, options, honoChecks)
  switch (declared.form) {
    case 'handler': {
      const { handler } = declared
      checkErrors(declared.operation, options)
      return context => cover(declared.operation, context, handlerRun(context, { handler, options }))
    }
    case 'middleware':
      return (context, next) => cover(declared.operation, context, middlewareRun(context, next))
    case 'phased':
      return async context => {
        const before = headersBefore(context)
        return answer(context, before, await exchangePhased(declared.operation, honoView(context), declared.route))
      }
  }
}

/** Of `rerun` and atomic work nothing is stored of an error that was not rendered here, so nothing untrue either. */
function checkErrors<X extends Execution, C extends HonoContext>(
  operation: Operation<X, C>,
  { onError }: HonoOptions<C>,
): void {
  const { onFailure } = operation[engine].settings
  if (operation.kind === 'atomic' || onFailure === 'rerun' || onError !== undefined) return
  throw misconfigured(
    `${operation.name}: under onFailure: '${onFailure}' what app.onError makes of an error decides what is stored, and Hono does not show it to a handler. ` +
      'Give that function as third argument, idempotent(operation, handler, { onError }), ' +
      'or mount idempotent(operation) as middleware before the handler',
  )
}

/**
 * The status of phased and deferred work, for its own scope: `app.get('/operations/:id', statusOf(latchkey))`, behind the same
 * authentication as the operations. Mount it where `http.statusPath` says.
 */
export function statusOf<C extends HonoContext>(
  latchkey: StatusHost<C>,
  options: StatusOptions<C> = {},
): (context: C) => Promise<Response> {
  checkStatus(latchkey, options)
  return async context => {
    const before = headersBefore(context)
    return answer(context, before, await exchangeStatus(latchkey, honoView(context), options))
  }
}

/** What outer middleware has set: sent with every answer, and not stored. */
function headersBefore(context: HonoContext): readonly Header[] {
  // Read without touching `res`: once that exists, Hono merges its headers over the handler's.
  return headersOf(context.body(null))
}

function answer<C extends HonoContext>(context: C, before: readonly Header[], rendered: RenderedAnswer): Response {
  return replaceResponse(context, fetchAnswer(before.length === 0 ? rendered : answerOver(before, rendered)))
}

/** The two forms differ in how the handler is run with a claim and without one. */
interface HandlerRun<X> {
  covered(execution: X): Promise<HandlerResponse>
  plain(execution: X): Promise<Response | undefined>
}

async function cover<X extends Execution, C extends HonoContext>(
  operation: Operation<X, C>,
  context: C,
  run: HandlerRun<X>,
): Promise<Response | undefined> {
  const before = headersBefore(context)
  const request = context.req.raw
  const result = await exchangeFetch(operation, honoView(context), {
    request,
    before,
    run(execution) {
      hideDisconnect(request)
      rememberExecution(context, execution)
      return run.covered(execution)
    },
  })
  switch (result.kind) {
    case 'pass':
      return run.plain(uncoveredExecution(operation))
    case 'send':
      return answer(context, before, result.answer)
    case 'respond':
      return replaceResponse(context, result.response)
    case 'threw':
      // The throw goes to app.onError, whose answer would take over the head of a response that broke off.
      context.res = undefined
      throw result.error
  }
}

function replaceResponse<C extends HonoContext>(context: C, response: Response): Response {
  // Undefined first: nothing of the response that is there may leak into this one.
  context.res = undefined
  context.res = response
  return response
}

function middlewareRun<X, C extends HonoContext>(context: C, next: HonoNext): HandlerRun<X> {
  return {
    async covered() {
      await next()
      return { response: context.res, error: context.error }
    },
    async plain() {
      await next()
      return undefined
    },
  }
}

interface GivenHandler<X, C> {
  readonly handler: HonoHandler<X, C>
  readonly options: HonoOptions<C>
}

function handlerRun<X, C extends HonoContext>(context: C, { handler, options }: GivenHandler<X, C>): HandlerRun<X> {
  return {
    async covered(execution) {
      try {
        const response: Response | undefined = await handler(context, execution)
        // Hono refuses it as well. Assigned, it would become an empty 200, and be stored.
        if (response === undefined) throw new TypeError('the handler returned no Response: is a return missing?')
        // As Hono itself would assign it, so that headers set on the context are in what is stored.
        context.res = response
        return { response: context.res }
      } catch (error) {
        const rendered = await renderError(error, context, options)
        if (rendered === undefined || !(error instanceof Error)) throw error
        context.error = error
        context.res = rendered
        return { response: context.res, error }
      }
    },
    plain: async execution => handler(context, execution),
  }
}

async function renderError<C extends HonoContext>(
  error: unknown,
  context: C,
  { onError }: HonoOptions<C>,
): Promise<Response | undefined> {
  if (!(error instanceof Error)) return undefined
  if (onError !== undefined) return onError(error, context)
  if (!('getResponse' in error) || typeof error.getResponse !== 'function') return undefined
  // Hono's own contract for errors that render themselves.
  const rendered = error.getResponse() as Response
  return context.newResponse(rendered.body, rendered)
}

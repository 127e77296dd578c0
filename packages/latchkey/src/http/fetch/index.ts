/** Route handlers of the `Request` → `Response` kind: Next.js, Deno-style servers, anything built on fetch's types. */
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable } from '../../ports/option-kinds.ts'
import { readClone } from '../adapter/clone-body.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import type { RequestView } from '../exchange/request.ts'
import { readRoute } from '../exchange/route.ts'
import { fetchAnswer } from '../web/capture.ts'
import { exchangeFetch, type HandlerResponse } from '../web/exchange-fetch.ts'
import { fetchView, hideDisconnect } from '../web/request.ts'

export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'

export interface FetchOptions<R> {
  /**
   * Renders an error that the handler threw, so that what is stored is what the client got. Default: none; the error counts as a
   * failure (`onFailure` decides) and is thrown to the server. Of a phased operation it renders the answer to this one request;
   * nothing of it is stored.
   */
  readonly onError?: (error: unknown, request: R) => Response | Promise<Response>
}

const fetchChecks: ChecksOf<FetchOptions<never>> = { onError: callable }

type FetchHandler<X, R, Rest extends unknown[]> = (
  request: R,
  execution: X,
  ...rest: Rest
) => Response | Promise<Response>

type RouteHandler<R, Rest extends unknown[]> = (request: R, ...rest: Rest) => Promise<Response>

/**
 * Wraps a route handler: the first request with a key runs it, every other gets the stored answer.
 *
 *     export const POST = idempotent(latchkey.atomic('orders.create'), async (request, { tx }) => …)
 *
 * The handler gets the request with its body still unread, then the execution, then what the server passes after the request. A request that
 * is not covered (another method, or without a key where that is allowed) runs with an execution that has no claim behind it. A fetch
 * server has no chain of middleware, so there is no middleware form.
 */
export function idempotent<X extends Execution, R extends Request, Rest extends unknown[]>(
  operation: Operation<X, R>,
  handler: (request: R, execution: X, ...rest: Rest) => Response | Promise<Response>,
  options?: FetchOptions<R>,
): (request: R, ...rest: Rest) => Promise<Response>
/**
 * Phased, `export const POST = idempotent(pay, { input: request => request.json() })`: the definition is declared with the operation.
 * What it throws is rendered by `onError`, or thrown to the server; a retry resumes after the last completed step.
 */
export function idempotent<Input, R extends Request, Rest extends unknown[]>(
  operation: DefinedOperation<Input, R>,
  route: PhasedRoute<R, NoInfer<Input>, Rest>,
  options?: FetchOptions<R>,
): (request: R, ...rest: Rest) => Promise<Response>
export function idempotent<X extends Execution, R extends Request, Rest extends unknown[]>(
  operation: Operation<X, R> | DefinedOperation<unknown, R>,
  given: FetchHandler<X, R, Rest> | PhasedRoute<R, unknown, Rest>,
  options: FetchOptions<R> = {},
): RouteHandler<R, Rest> {
  const declared = readRoute(operation, given)
  checkOptions(operation.name, options, fetchChecks)
  switch (declared.form) {
    case 'handler':
      return handlerRoute(declared.operation, declared.handler, options)
    case 'middleware':
      throw misconfigured(
        `${operation.name}: a fetch server has no chain of middleware. Write idempotent(operation, async (request, execution) => …)`,
      )
    case 'phased':
      return phasedRoute(declared.operation, declared.route, options)
  }
}

function phasedRoute<R extends Request, Rest extends unknown[]>(
  operation: DefinedOperation<unknown, R>,
  { input }: PhasedRoute<R, unknown, Rest>,
  { onError }: FetchOptions<R>,
): RouteHandler<R, Rest> {
  return async (request, ...rest) => {
    try {
      return fetchAnswer(await exchangePhased(operation, viewOf(request), { input: () => input(request, ...rest) }))
    } catch (error) {
      if (onError === undefined) throw error
      return onError(error, request)
    }
  }
}

function handlerRoute<X extends Execution, R extends Request, Rest extends unknown[]>(
  operation: Operation<X, R>,
  handler: FetchHandler<X, R, Rest>,
  options: FetchOptions<R>,
): RouteHandler<R, Rest> {
  return async (request, ...rest) => {
    const result = await exchangeFetch(operation, viewOf(request), {
      request,
      run: execution => run(hideDisconnect(request), execution),
    })
    switch (result.kind) {
      case 'pass':
        return handler(request, uncoveredExecution(operation), ...rest)
      case 'send':
        return fetchAnswer(result.answer)
      case 'respond':
        return result.response
      case 'threw':
        throw result.error
    }

    async function run(covered: R, execution: X): Promise<HandlerResponse> {
      try {
        const response: Response | undefined = await handler(covered, execution, ...rest)
        if (response === undefined) throw new TypeError('the handler returned no Response: is a return missing?')
        return { response }
      } catch (error) {
        if (options.onError === undefined) throw error
        return { response: await options.onError(error, covered), error }
      }
    }
  }
}

/**
 * The status of phased and deferred work, for its own scope: `export const GET = statusOf(latchkey)`, behind the same authentication as
 * the operations. Mount it where `http.statusPath` says.
 */
export function statusOf<R extends Request>(
  latchkey: StatusHost<R>,
  options: StatusOptions<R> = {},
): (request: R) => Promise<Response> {
  checkStatus(latchkey, options)
  return async request => fetchAnswer(await exchangeStatus(latchkey, viewOf(request), options))
}

function viewOf<R extends Request>(request: R): RequestView<R> {
  return fetchView(request, request, readClone)
}

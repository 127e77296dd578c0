/** Route handlers of the `Request` → `Response` kind: Next.js, Deno-style servers, anything built on fetch's types. */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable } from '../../ports/option-kinds.ts'
import { checkOperation } from '../exchange/route.ts'
import { exchange } from '../exchange/exchange.ts'
import { checkPhased, exchangePhased, isDefined, type PhasedRoute } from '../exchange/phased-route.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import { type BodyRead, tooLarge } from '../exchange/request.ts'
import { captureFetchResponse, type FetchCapture, fetchAnswer, releaseFetch } from '../web/capture.ts'
import { declaredLength, readWithin } from '../web/body.ts'
import { fetchView, hideDisconnect } from '../web/request.ts'

export { corsHeaders } from '../../wire/headers.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'

export interface FetchOptions<R> {
  /**
   * Renders an error that the handler threw, so that what is stored is what the client got. Default: none; the error counts as a
   * failure (`onFailure` decides) and is thrown on to the server. Of a phased operation it renders the answer to this one request;
   * nothing of it is stored.
   */
  readonly onError?: (error: unknown, request: R) => Response | Promise<Response>
}

const fetchChecks: ChecksOf<FetchOptions<never>> = { onError: callable }

export interface FetchPhasedRoute<Input, R, Rest extends unknown[]> {
  /**
   * Builds the operation's input from the request, whose body is still unread, and from whatever the server passes on: JSON, at most
   * 64 KiB, stored when the work begins. The definition sees nothing else of the request, because a worker may go on with it.
   */
  readonly input: (request: R, ...rest: Rest) => Input | Promise<Input>
}

type Handler<X, R, Rest extends unknown[]> = (request: R, execution: X, ...rest: Rest) => Response | Promise<Response>

type RouteHandler<R, Rest extends unknown[]> = (request: R, ...rest: Rest) => Promise<Response>

/**
 * Wraps a route handler: the first request with a key runs it, every other gets the stored answer.
 *
 *     export const POST = idempotent(latchkey.atomic('orders.create'), async (request, { tx }) => …)
 *
 * The handler gets the request with its body still unread, then the execution, then whatever the server passes on. A request that
 * is not covered (another method, or without a key where that is allowed) runs with an execution that has no claim behind it.
 */
export function idempotent<X extends Execution, R extends Request, Rest extends unknown[]>(
  operation: Operation<X, R>,
  handler: (request: R, execution: X, ...rest: Rest) => Response | Promise<Response>,
  options?: FetchOptions<R>,
): (request: R, ...rest: Rest) => Promise<Response>
/**
 * Phased, `export const POST = idempotent(pay, { input: request => request.json() })`: the definition is declared with the operation.
 * What it throws is rendered by `onError`, or thrown on to the server; the retry goes on behind the steps that are finished.
 */
export function idempotent<Input, R extends Request, Rest extends unknown[]>(
  operation: DefinedOperation<Input, R>,
  route: FetchPhasedRoute<NoInfer<Input>, R, Rest>,
  options?: FetchOptions<R>,
): (request: R, ...rest: Rest) => Promise<Response>
export function idempotent<X extends Execution, R extends Request, Rest extends unknown[]>(
  operation: Operation<X, R> | DefinedOperation<unknown, R>,
  given: Handler<X, R, Rest> | FetchPhasedRoute<unknown, R, Rest>,
  options: FetchOptions<R> = {},
): RouteHandler<R, Rest> {
  if (operation?.name !== undefined) checkOptions(operation.name, options, fetchChecks)
  if (isDefined(operation)) return phasedRoute(operation, given, options)
  checkOperation(operation)
  if (typeof given === 'object')
    throw misconfigured(`${operation.name}: only a phased or deferred operation takes { input }`)
  return handlerRoute(operation, given, options)
}

function phasedRoute<R extends Request, Rest extends unknown[]>(
  operation: DefinedOperation<unknown, R>,
  given: unknown,
  options: FetchOptions<R>,
): RouteHandler<R, Rest> {
  // Looked at right away; `rest` is the server's, and comes with each request.
  checkPhased(operation, given as PhasedRoute<R, unknown>)
  const { input } = given as FetchPhasedRoute<unknown, R, Rest>
  const routeWith = (rest: Rest): PhasedRoute<R, unknown> => ({ input: request => input(request, ...rest) })
  return async (request, ...rest) => {
    try {
      return fetchAnswer(await exchangePhased(operation, fetchView(request, request, readClone), routeWith(rest)))
    } catch (error) {
      if (options.onError === undefined) throw error
      return options.onError(error, request)
    }
  }
}

function handlerRoute<X extends Execution, R extends Request, Rest extends unknown[]>(
  operation: Operation<X, R>,
  handler: Handler<X, R, Rest>,
  options: FetchOptions<R>,
): RouteHandler<R, Rest> {
  return async (request, ...rest) => {
    let capture: FetchCapture | undefined
    const result = await exchange(operation, fetchView(request, request, readClone), async execution => {
      capture = await run(hideDisconnect(request), execution)
      return capture.attempt
    })
    switch (result.kind) {
      case 'pass':
        return handler(request, uncoveredExecution(operation), ...rest)
      case 'send':
        return fetchAnswer(result.answer)
      case 'release':
        return releaseFetch(capture, result)
    }

    async function run(covered: R, execution: X): Promise<FetchCapture> {
      try {
        return await captureFetchResponse(await handler(covered, execution, ...rest))
      } catch (error) {
        if (options.onError === undefined)
          return { response: undefined, attempt: { kind: 'threw', error } satisfies Attempt }
        return captureFetchResponse(await options.onError(error, covered), { error })
      }
    }
  }
}

/**
 * The status of phased and deferred work, for its own scope: `export const GET = statusOf(latchkey)`, behind the same authentication as the
 * operations. Mount it where `http.statusPath` says.
 */
export function statusOf<R extends Request>(
  latchkey: StatusHost<R>,
  options: StatusOptions<R> = {},
): (request: R) => Promise<Response> {
  checkStatus(latchkey, options)
  return async request => fetchAnswer(await exchangeStatus(latchkey, fetchView(request, request, readClone), options))
}

/** A clone, because the request stays the server's own kind (a NextRequest has cookies) and its body unread. */
async function readClone(request: Request, bytesMax: number): Promise<BodyRead> {
  const declared = declaredLength(request)
  if (declared === undefined) return readWithin(request.clone().body, bytesMax)
  if (declared > bytesMax) return tooLarge(bytesMax)
  return { kind: 'bytes', bytes: new Uint8Array(await request.clone().arrayBuffer()) }
}

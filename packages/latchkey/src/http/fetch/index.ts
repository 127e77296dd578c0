/** Route handlers of the `Request` → `Response` kind: Next.js, Deno-style servers, anything built on fetch's types. */
import type { Attempt } from '../../engine/answer.ts'
import type { Execution } from '../../engine/execution.ts'
import type { Operation } from '../../engine/operation.ts'
import { uncoveredExecution } from '../../engine/uncovered.ts'
import { checkOperation } from '../exchange/check-operation.ts'
import { exchange } from '../exchange/exchange.ts'
import { captureFetchResponse, type FetchCapture, fetchAnswer, releaseFetch } from '../capture/fetch-response.ts'
import { fetchView, hideDisconnect } from '../capture/fetch-request.ts'

export { corsHeaders } from '../../wire/headers.ts'

export interface FetchOptions<R> {
  /**
   * Renders an error that the handler threw, so that what is stored is what the client got. Default: none; the error counts as a
   * failure (`onFailure` decides) and is thrown on to the server.
   */
  readonly onError?: (error: unknown, request: R) => Response | Promise<Response>
}

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
  options: FetchOptions<R> = {},
): (request: R, ...rest: Rest) => Promise<Response> {
  checkOperation(operation)
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

/** A clone, because the request stays the server's own kind (a NextRequest has cookies) and its body unread. */
async function readClone(request: Request): Promise<Uint8Array> {
  return new Uint8Array(await request.clone().arrayBuffer())
}

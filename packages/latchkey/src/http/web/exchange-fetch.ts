/** One request through Latchkey on a framework whose handlers return a fetch `Response`. */
import type { Attempt, Work } from '../../engine/answer.ts'
import type { Execution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { Operation } from '../../engine/operation.ts'
import type { Header } from '../../ports/outcome.ts'
import { type Exchange, exchange } from '../exchange/exchange.ts'
import type { RequestView } from '../exchange/request.ts'
import { reportFailure } from '../exchange/route.ts'
import { captureFetchResponse, type FetchCapture } from './capture.ts'

/** What the adapter does now. */
export type FetchExchange =
  | Exclude<Exchange, { kind: 'release' }>
  /** Send the handler's response. It may still be being written. */
  | { readonly kind: 'respond'; readonly response: Response }
  /** There is no response: throw this to the framework. */
  | { readonly kind: 'threw'; readonly error: unknown }

export interface FetchRun<X> {
  /** The request that `hideDisconnect` was given. */
  readonly request: object
  /** Headers that outer middleware had set when Latchkey began. They are sent and not stored. Default: none. */
  readonly before?: readonly Header[]
  /** Runs the handler. Rejects with what it threw, if no response was made of that. */
  readonly run: (execution: X) => Promise<HandlerResponse>
}

/** A response as the client would get it, after the framework's error handler. */
export interface HandlerResponse {
  readonly response: Response
  /** The response was rendered from this throw. */
  readonly error?: unknown
}

/**
 * Fulfils when there is something to send: at the end of the exchange, or before it for a response that is larger than what is stored,
 * and for a stream of events.
 */
export function exchangeFetch<X extends Execution, C>(
  operation: Operation<X, C>,
  view: RequestView<C>,
  { request, before = [], run }: FetchRun<X>,
): Promise<FetchExchange> {
  return new Promise((resolve, reject) => {
    let capture: FetchCapture | undefined
    const bytesMax = operation[engine].settings.outcomeBytesMax
    const work: Work<X> = async execution => {
      try {
        const { response, error } = await run(execution)
        const captured = captureFetchResponse(response, { error, before, bytesMax, request })
        capture = captured instanceof Promise ? await captured : captured
      } catch (error) {
        return { kind: 'threw', error }
      }
      if (capture.stream !== undefined && capture.response !== undefined) {
        resolve({ kind: 'respond', response: capture.response })
      }
      return capture.attempt
    }
    exchange(operation, view, work).then(
      result => {
        if (capture?.stream === undefined) resolve(result.kind === 'release' ? release(capture, result) : result)
        else capture.stream.conclude(result)
      },
      (error: unknown) => {
        if (capture?.stream === undefined) return reject(error)
        reportFailure(operation, 'an execution failed', error)
        capture.stream.conclude()
      },
    )
  })
}

function release(
  capture: FetchCapture | undefined,
  { attempt, headers }: { readonly attempt: Attempt; readonly headers: readonly Header[] },
): FetchExchange {
  if (capture?.response === undefined) {
    const error = attempt.kind === 'threw' ? attempt.error : new Error('the handler returned no response')
    return { kind: 'threw', error }
  }
  for (const [name, value] of headers) capture.response.headers.set(name, value)
  return { kind: 'respond', response: capture.response }
}

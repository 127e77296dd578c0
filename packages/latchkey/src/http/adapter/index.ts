/**
 * What an adapter is made of. The adapters of this package are written with the same functions.
 *
 *   const declared = readRoute(operation, given)               // when the route is declared
 *   const result = await exchange(operation, view, run)        // for each request: `run` runs the handler and captures its answer
 *
 * `view` is a `RequestView` of the framework's request: `nodeView` or `fetchView`. On Node's response, `run` captures the answer with
 * `holdAnswer`; handlers that return a fetch `Response` run under `exchangeFetch` instead. Then the adapter does what `result` says. Test
 * it with `runAdapterCases` of @latchkey/conformance.
 */

// Declaring a route.
export { readRoute, reportFailure, type Route } from '../exchange/route.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { checkStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'

// One request.
export { type Exchange, exchange } from '../exchange/exchange.ts'
export { exchangePhased } from '../exchange/phased-route.ts'
export { exchangeStatus } from '../exchange/answers/status.ts'
export { executionOf, rememberExecution } from '../../engine/execution.ts'
export { uncoveredExecution } from '../../engine/execution.ts'

// What the exchange reads of a request.
export { type BodyRead, type RequestView, tooLarge } from '../exchange/request.ts'
export { parsedBody } from '../exchange/parsed-body.ts'

// Answers of Latchkey's own.
export { answerOver } from './answer-over.ts'
export type { RenderedAnswer } from '../../wire/rendered-answer.ts'
export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'

// On Node's request and response.
export { type BodyLeft, bodyOf, type NodeBodyRequest, nodeView, teeBody } from '../node/request.ts'
export {
  attemptOfCapture,
  type Capture,
  type CaptureEnd,
  captureResponse,
  hasFailed,
  type HeldAnswer,
  holdAnswer,
  type HoldAnswerOptions,
  sendAnswer,
  thrownError,
} from '../node/capture.ts'
export type { NodeRequest, NodeResponse } from '../node/driver.ts'

// On fetch's Request and Response.
export { fetchView, hideDisconnect } from '../web/request.ts'
export { fetchAnswer } from '../web/capture.ts'
export { exchangeFetch, type FetchExchange, type FetchRun, type HandlerResponse } from '../web/exchange-fetch.ts'
export { readClone } from './clone-body.ts'

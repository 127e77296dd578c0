/** Latchkey on h3, a framework that it ships no adapter for. Mount it after authentication and validation. */
import { type H3Event, type Middleware, toResponse } from 'h3'
import type { DefinedOperation, Execution, Header, Operation } from 'latchkey'
import * as kit from 'latchkey/http/adapter'

export { corsHeaders, executionOf } from 'latchkey/http/adapter'

type Handler<X> = (event: H3Event, execution: X) => unknown
type Route = (event: H3Event) => Promise<Response>

/** `app.post('/orders', idempotent(operation, async (event, { tx }) => …))` */
export function idempotent<X extends Execution>(operation: Operation<X, H3Event>, handler: Handler<X>): Route
/** `app.post('/payments', idempotent(pay, { input: event => readBody(event) }))` */
export function idempotent<Input>(
  operation: DefinedOperation<Input, H3Event>,
  route: kit.PhasedRoute<H3Event, NoInfer<Input>>,
): Route
/** `app.use('/orders', idempotent(operation))`: everything behind it is covered. The execution is `executionOf(event)`. */
export function idempotent<X extends Execution>(operation: Operation<X, H3Event>): Middleware
export function idempotent<X extends Execution>(
  operation: Operation<X, H3Event> | DefinedOperation<unknown, H3Event>,
  given?: Handler<X> | kit.PhasedRoute<H3Event, unknown>,
): (event: H3Event, next: () => unknown) => unknown {
  const declared = kit.readRoute(operation, given)
  switch (declared.form) {
    case 'handler':
      return event => serve(declared.operation, event, execution => declared.handler(event, execution))
    case 'middleware':
      return (event, next) => serve(declared.operation, event, next)
    case 'phased':
      return event => answer(event, kit.exchangePhased(declared.operation, viewOf(event), declared.route))
  }
}

/** `app.get('/operations/:id', statusOf(latchkey))` */
export function statusOf(latchkey: kit.StatusHost<H3Event>, options: kit.StatusOptions<H3Event> = {}): Route {
  kit.checkStatus(latchkey, options)
  return event => answer(event, kit.exchangeStatus(latchkey, viewOf(event), options))
}

function viewOf(event: H3Event): kit.RequestView<H3Event> {
  return kit.fetchView(event.req, event, kit.readClone)
}

async function serve<X extends Execution>(
  operation: Operation<X, H3Event>,
  event: H3Event,
  handle: (execution: X) => unknown,
): Promise<unknown> {
  const before = [...event.res.headers]
  const result = await kit.exchangeFetch(operation, viewOf(event), {
    request: event.req,
    before,
    run(execution) {
      kit.rememberExecution(event, execution)
      kit.hideDisconnect(event.req)
      return render(event, async () => handle(execution))
    },
  })
  switch (result.kind) {
    case 'pass':
      return handle(kit.uncoveredExecution(operation))
    case 'send':
      return send(event, before, result.answer)
    case 'respond':
      return result.response
    case 'threw':
      throw result.error
  }
}

/** The response as the client would get it, after `onError` of the app. */
async function render(event: H3Event, run: () => Promise<unknown>): Promise<kit.HandlerResponse> {
  let error: unknown
  const value = run().catch((thrown: unknown) => {
    throw (error = kit.thrownError(thrown))
  })
  // `onResponse` runs when h3 sends the response, for a replay as for the first answer.
  const { onResponse: _, ...config } = event.app?.config ?? {}
  return { response: await toResponse(value, event, config), error }
}

async function answer(event: H3Event, rendered: Promise<kit.RenderedAnswer>): Promise<Response> {
  return send(event, [...event.res.headers], await rendered)
}

/** With the headers of outer middleware, which h3 itself would leave out of a 4xx. */
function send(event: H3Event, before: readonly Header[], rendered: kit.RenderedAnswer): Response {
  for (const [name] of before) event.res.headers.delete(name)
  return kit.fetchAnswer(kit.answerOver(before, rendered))
}

/** What Latchkey knows of a request while its handler runs. */
import type { Execution, GuardedExecution } from '../../engine/execution.ts'
import type { ExpressErrorMiddleware, ExpressRequest } from './driver.ts'

export interface Visit {
  readonly execution: Execution
  /** What the answer is rendered from, if it comes from a throw. */
  error: unknown
}

/** On the request itself: a table of all requests would be work for the garbage collector. */
const visitOf: unique symbol = Symbol('latchkey: visit')

interface Visited {
  [visitOf]?: Visit
}

export function openVisit(req: ExpressRequest & Visited, execution: Execution): Visit {
  const visit: Visit = { execution, error: undefined }
  req[visitOf] = visit
  const { next } = req
  if (next !== undefined) {
    req.next = error => {
      remember(visit, error)
      next(error)
    }
  }
  return visit
}

/** `route` and `router` are no errors: Express takes them as the order to leave. */
function remember(visit: Visit, error: unknown): void {
  if (error !== undefined && error !== null && error !== 'route' && error !== 'router') visit.error = error
}

/**
 * The execution of a request behind `idempotent(operation)` as middleware; undefined where it is not covered (another
 * method, or without a key where that is allowed).
 */
export function executionOf(req: object): GuardedExecution | undefined {
  return visited(req)?.execution
}

/**
 * Mount it before the app's own error middleware: `app.use(rememberErrors(), renderErrors)`. Express does not show
 * middleware the errors of later handlers, so that without it `idempotent(operation)` as middleware judges a failure by
 * the rendered status alone, and `notExecuted()` and `outcomeUnknown()` thrown by the handler go unheard. The handler
 * form needs none of this.
 */
export function rememberErrors(): ExpressErrorMiddleware {
  // Express tells error middleware by its four parameters.
  return (error, req, _res, next) => {
    const visit = visited(req)
    if (visit !== undefined) remember(visit, error)
    next(error)
  }
}

function visited(req: Visited): Visit | undefined {
  return req[visitOf]
}

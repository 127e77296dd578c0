/** The error that the app's error middleware renders, noted on its way there: Express does not show it to earlier middleware. */
import type { ExpressErrorMiddleware, ExpressRequest } from './driver.ts'

export interface RenderedError {
  /** Undefined while the handler has not failed. */
  error: unknown
}

/** On the request itself: a WeakMap keyed by request costs GC time. */
const ofRequest: unique symbol = Symbol('latchkey: rendered error')

interface Watched {
  [ofRequest]?: RenderedError
}

/** Notes the errors of a request from now on: those that `res.sendFile` and `res.render` report, and those of `rememberErrors`. */
export function watchErrors(req: ExpressRequest & Watched): RenderedError {
  const rendered: RenderedError = { error: undefined }
  req[ofRequest] = rendered
  const { next } = req
  if (next !== undefined) {
    req.next = error => {
      note(rendered, error)
      next(error)
    }
  }
  return rendered
}

/** `route` and `router` are not errors: Express leaves the route or the router for them. */
function note(rendered: RenderedError, error: unknown): void {
  if (error !== undefined && error !== null && error !== 'route' && error !== 'router') rendered.error = error
}

/**
 * Mount it before the app's own error middleware: `app.use(rememberErrors(), renderErrors)`. Express does not show middleware the errors
 * of later handlers. Without it, `idempotent(operation)` as middleware judges a failure by the rendered status alone, and
 * `notExecuted()` and `outcomeUnknown()` thrown by the handler have no effect. The handler form does not need it.
 */
export function rememberErrors(): ExpressErrorMiddleware {
  // Express recognises error middleware by its four parameters.
  return (error, req: Watched, _res, next) => {
    const rendered = req[ofRequest]
    if (rendered !== undefined) note(rendered, error)
    next(error)
  }
}

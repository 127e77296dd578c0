/** What `idempotent()` was given, checked when the route is declared and not on its first request. */
import type { Execution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { DeclaredOperation, DefinedOperation, HttpOptions, Operation } from '../../engine/operation.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable } from '../../ports/option-kinds.ts'
import { isProblemBase } from '../../wire/render-problem.ts'
import type { PhasedRoute } from './phased-route.ts'

/** The forms that `idempotent()` has in every adapter. */
export type Route<X extends Execution, Context, Handler, Rest extends unknown[] = []> =
  /** `idempotent(operation, handler)` */
  | { readonly form: 'handler'; readonly operation: Operation<X, Context>; readonly handler: Handler }
  /** `idempotent(operation)`: what is mounted behind it does the work. */
  | { readonly form: 'middleware'; readonly operation: Operation<X, Context> }
  /** `idempotent(operation, { input })`: the definition is declared with the operation. */
  | {
      readonly form: 'phased'
      readonly operation: DefinedOperation<unknown, Context>
      readonly route: PhasedRoute<Context, unknown, Rest>
    }

// A handler of any framework.
type AnyHandler = (...args: never[]) => unknown

/** The form that the arguments of `idempotent()` have. Throws `misconfigured` for those that have none. */
export function readRoute<X extends Execution, Context, Handler extends AnyHandler, Rest extends unknown[] = []>(
  operation: Operation<X, Context> | DefinedOperation<unknown, Context>,
  given?: Handler | PhasedRoute<Context, unknown, Rest>,
): Route<X, Context, Handler, Rest> {
  checkOperation(operation)
  if (isDefined(operation)) return { form: 'phased', operation, route: checkedInput(operation, given) }
  if (given === undefined) return { form: 'middleware', operation }
  if (typeof given === 'function') return { form: 'handler', operation, handler: given }
  throw misconfigured(`${operation.name}: only a phased or deferred operation takes { input }`)
}

/** Phased and deferred operations are declared with their definition; the others get a handler. */
export function isDefined<X extends Execution, C>(
  operation: Operation<X, C> | DefinedOperation<unknown, C>,
): operation is DefinedOperation<unknown, C> {
  return operation.kind === 'phased' || operation.kind === 'deferred'
}

const routeChecks: ChecksOf<PhasedRoute<unknown, unknown>> = { input: callable }

function checkedInput<C, Rest extends unknown[]>(
  { name, kind }: DefinedOperation<unknown, C>,
  given: unknown,
): PhasedRoute<C, unknown, Rest> {
  const route = given as PhasedRoute<C, unknown, Rest> // checked on the next lines
  if (typeof route?.input !== 'function') {
    throw misconfigured(
      `${name}: a ${kind} operation needs { input }, a function of the request: its definition is declared with it`,
    )
  }
  checkOptions(name, route, routeChecks)
  return route
}

/** Reports an error that the client is not shown and the framework's own error handler may never see. */
export function reportFailure<C>(operation: DeclaredOperation<C>, message: string, error: unknown): void {
  operation[engine].shared.telemetry.report(message, { operation: operation.name, error })
}

/** What only HTTP cares about. */
export function checkOperation<C>(operation: DeclaredOperation<C>): void {
  if (typeof operation?.[engine] !== 'object') {
    throw misconfigured("idempotent needs an operation first, such as latchkey.atomic('orders.create')")
  }
  const { settings, shared } = operation[engine]
  checkHttp(shared.http)
  if (settings.methods.length === 0) {
    throw misconfigured(
      `${operation.name}: methods is empty, so no request would be covered. Name at least one, or leave it out`,
    )
  }
}

export function checkHttp({ problemBase, statusPath }: Pick<HttpOptions, 'problemBase' | 'statusPath'>): void {
  if (problemBase !== undefined && !isProblemBase(problemBase)) {
    throw misconfigured(`http.problemBase must be an http or https URL in ASCII (got ${JSON.stringify(problemBase)})`)
  }
  if (statusPath === undefined) return
  const id = '00000000-0000-0000-0000-000000000000'
  const path: unknown = typeof statusPath === 'function' ? statusPath(id) : statusPath
  if (typeof path === 'string' && path.includes(id) && /^[\x21-\x7e]+$/.test(path)) return
  throw misconfigured(
    'http.statusPath must return a path or URL in ASCII that contains the id, such as id => `/operations/${id}` ' +
      `(got ${JSON.stringify(path)} for ${id})`,
  )
}

import type { DeclaredOperation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { isProblemBase } from '../../wire/problem.ts'

/** What only HTTP cares about, checked when the route is declared and not on its first request. */
export function checkOperation<C>(operation: DeclaredOperation<C>): void {
  if (typeof operation?.shared !== 'object') {
    throw misconfigured("idempotent needs an operation first, such as latchkey.atomic('orders.create')")
  }
  const { name, settings, shared } = operation
  const { problemBase } = shared.http
  if (problemBase !== undefined && !isProblemBase(problemBase)) {
    throw misconfigured(`http.problemBase is ${JSON.stringify(problemBase)}, and must be an http or https URL in ASCII`)
  }
  if (settings.methods.length === 0) {
    throw misconfigured(`${name}: methods is empty, so no request would be covered. Name at least one, or leave it out`)
  }
}

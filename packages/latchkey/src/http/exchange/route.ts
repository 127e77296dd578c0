import { engine } from '../../engine/internal.ts'
import type { DeclaredOperation, HttpOptions } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { isProblemBase } from '../../wire/problem.ts'

/** What only HTTP cares about, checked when the route is declared and not on its first request. */
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

export function checkHttp({ problemBase, statusPath }: HttpOptions): void {
  if (problemBase !== undefined && !isProblemBase(problemBase)) {
    throw misconfigured(`http.problemBase is ${JSON.stringify(problemBase)}, and must be an http or https URL in ASCII`)
  }
  if (statusPath === undefined) return
  const id = '00000000-0000-0000-0000-000000000000'
  const path: unknown = typeof statusPath === 'function' ? statusPath(id) : statusPath
  if (typeof path === 'string' && path.includes(id) && /^[\x21-\x7e]+$/.test(path)) return
  throw misconfigured(
    `http.statusPath must make a path or URL in ASCII that holds the id, such as id => \`/operations/\${id}\`; for ${id} it made ${JSON.stringify(path)}`,
  )
}

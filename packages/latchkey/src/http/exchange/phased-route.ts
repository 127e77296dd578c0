/** A phased operation over HTTP: its definition is declared with it, so the adapter only builds the input and sends what comes back. */
import type { Execution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { LatchkeyError, misconfigured } from '../../ports/errors.ts'
import { callable } from '../../ports/option-kinds.ts'
import { prefersAsync } from '../../wire/prefer.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { checkOperation } from './route.ts'
import { exchange } from './exchange.ts'
import type { RequestView } from './request.ts'

export interface PhasedRoute<C, Input> {
  /**
   * Builds the operation's input from the request: JSON, at most 64 KiB and 256 levels (413), stored when the work begins. The definition sees
   * nothing else of the request, because a worker may go on with it.
   */
  readonly input: (context: C) => Input | Promise<Input>
}

const routeChecks: ChecksOf<PhasedRoute<unknown, unknown>> = { input: callable }

/** Phased and deferred operations bring their definition along; the others get a handler. */
export function isDefined<X extends Execution, C>(
  operation: Operation<X, C> | DefinedOperation<unknown, C>,
): operation is DefinedOperation<unknown, C> {
  return operation?.kind === 'phased' || operation?.kind === 'deferred'
}

export function checkPhased<C, Input>(operation: DefinedOperation<Input, C>, route: PhasedRoute<C, Input>): void {
  checkOperation(operation)
  if (typeof route?.input !== 'function') {
    throw misconfigured(
      `${operation.name}: a ${operation.kind} operation needs { input }, a function of the request: its definition is declared with it`,
    )
  }
  checkOptions(operation.name, route, routeChecks)
}

/** The answer to send. Rejects with what the definition threw, for the framework's own error handler. */
export async function exchangePhased<C, Input>(
  operation: DefinedOperation<Input, C>,
  view: RequestView<C>,
  route: PhasedRoute<C, Input>,
): Promise<RenderedAnswer> {
  const result = await exchange(operation, view, {
    input: () => route.input(view.context),
    respondAsync: prefersAsync(view.header('Prefer')),
  })
  switch (result.kind) {
    case 'send':
      return result.answer
    case 'release': {
      const { attempt, headers } = result
      if (attempt.kind === 'threw') throw attempt.error
      if (attempt.kind === 'unreplayable')
        throw new LatchkeyError('invariant', `${operation.name}: phased work has no such answer`)
      const { status, headers: own, body = new Uint8Array() } = attempt.outcome
      return { status, headers: [...own, ...headers].map(([name, value]) => [name, value]), body }
    }
    case 'pass':
      throw new LatchkeyError(
        'invalid-key',
        `${operation.name}: a ${operation.kind} operation is not covered for ${view.method}: name it in methods`,
      )
  }
}

/** A phased operation over HTTP: its definition is declared with it, so the adapter only builds the input and sends the answer. */
import type { DefinedOperation } from '../../engine/operation.ts'
import { LatchkeyError } from '../../ports/errors.ts'
import { prefersAsync } from '../../wire/prefer.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { exchange } from './exchange.ts'
import type { RequestView } from './request.ts'

/** `Rest`: what the server passes to a handler after the request; fetch servers do, the frameworks do not. */
export interface PhasedRoute<Context, Input, Rest extends unknown[] = []> {
  /**
   * Builds the operation's input from the request: JSON, at most 64 KiB and 256 levels (413), stored when the work begins. The
   * definition sees nothing else of the request, because a worker may resume it.
   */
  readonly input: (context: Context, ...rest: Rest) => Input | Promise<Input>
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

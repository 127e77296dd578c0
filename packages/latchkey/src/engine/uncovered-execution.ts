/** What a handler gets on a request that is not covered: another method, or no key where none is required. */
import { LatchkeyError } from '../ports/errors.ts'
import type { Execution } from './execution.ts'
import type { Operation } from './operation.ts'

/** There is no claim behind it: what would need one says so when it is used. */
export function uncoveredExecution<X extends Execution, C>({ kind, name }: Operation<X, C>): X {
  const missing = (what: string) =>
    new LatchkeyError(
      'invalid-key',
      `${name}: the request is not covered (its method, or no key), so there is no ${what}`,
    )
  const execution: Execution = {
    id: '',
    key: '',
    scope: '',
    operation: name,
    attempt: 1,
    fence: 0,
    signal: new AbortController().signal,
    downstreamKey() {
      throw missing('key to derive one from')
    },
    // There is no key to free.
    notExecuted() {},
  }
  if (kind === 'atomic') {
    Object.defineProperty(execution, 'tx', {
      get() {
        throw missing('transaction')
      },
    })
  }
  // Every member of X is there, of the type that the operation's kind gives it.
  return execution as X
}

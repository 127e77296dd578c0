/** The operations that the servers guard, with the settings of an ordinary application: all defaults. */
import { type AtomicOperation, createLatchkey, type GuardedOperation, type Latchkey } from 'latchkey'
import type { Backend } from './backend.ts'

export const scope = 'bench'
export const operationName = 'orders.create'

export function latchkeyOn<Context>({ store }: Backend): Latchkey<unknown, Context> {
  // As where workers run: no statement of its own beside those of the requests, which are counted.
  return createLatchkey({ store, scope: (_context: Context) => scope, maintenance: false })
}

export function guardedOperation<Context>(backend: Backend): GuardedOperation<Context> {
  return latchkeyOn<Context>(backend).guarded(operationName, { onFailure: 'hold' })
}

export function atomicOperation<Context>(backend: Backend): AtomicOperation<unknown, Context> {
  return latchkeyOn<Context>(backend).atomic(operationName)
}

/** The operations that the servers guard, with the settings of an ordinary application: all defaults, unless an option is measured. */
import {
  type AtomicOperation,
  createLatchkey,
  type GuardedOperation,
  type Latchkey,
  type LatchkeyOptions,
} from 'latchkey'
import type { Backend } from './backends/backend.ts'

/** Where keys are. */
export type Keys = Pick<Backend, 'store'>

export const scope = 'bench'
export const operationName = 'orders.create'

export type Options<Context> = Partial<
  Pick<LatchkeyOptions<unknown, Context>, 'telemetry' | 'encryption' | 'limits' | 'scope'>
>

export function latchkeyOn<Context>({ store }: Keys, options: Options<Context> = {}): Latchkey<unknown, Context> {
  // As where workers run: no statement of its own beside those of the requests, which are counted.
  return createLatchkey({ store, scope: (_context: Context) => scope, maintenance: false, ...options })
}

export function guardedOperation<Context>(backend: Keys, options?: Options<Context>): GuardedOperation<Context> {
  return latchkeyOn<Context>(backend, options).guarded(operationName, { onFailure: 'hold' })
}

export function atomicOperation<Context>(backend: Backend): AtomicOperation<unknown, Context> {
  return latchkeyOn<Context>(backend).atomic(operationName)
}

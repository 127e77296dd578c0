/** The execution of a request, from the interceptor to a parameter of the controller's method. */
import type { Execution } from '../../engine/execution.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { ExecutionDecorator } from './driver.ts'
import { addParameter } from './metadata.ts'

/** On the request itself: a WeakMap keyed by request costs GC time. */
const parameter: unique symbol = Symbol('latchkey: parameter')

interface Parameterized {
  [parameter]?: Execution
}

/** Also on a request that is not covered: a parameter may be destructured. */
export function rememberParameter(request: object, execution: Execution): void {
  const target: Parameterized = request
  target[parameter] = execution
}

/**
 * The execution as a parameter: `create(@Body() order: NewOrder, @LatchkeyExecution() { tx }: AtomicExecution<Tx>)`. Declare its type by
 * the kind of the operation; TypeScript cannot check it. On a request that is not covered (another method, or without a key where that is
 * allowed) there is no claim behind it.
 */
export function LatchkeyExecution(): ExecutionDecorator {
  return (prototype, method, index) => {
    if (method === undefined)
      throw misconfigured('@LatchkeyExecution() belongs on a parameter of a method, not of a constructor')
    addParameter({ prototype, method, index }, context => {
      if (context.getType() !== 'http') return undefined
      const request: object = context.switchToHttp().getRequest()
      const source: Parameterized = request
      return source[parameter]
    })
  }
}

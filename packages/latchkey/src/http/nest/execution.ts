/** The execution of a request, from the interceptor to the controller. */
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import type { Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { ParameterDecorator } from './driver.ts'
import { addParameter } from './metadata.ts'

interface Remembered {
  readonly operation: object
  readonly execution: Execution
}

/** On the request itself: a table of all requests would be work for the garbage collector. */
const ofRequest: unique symbol = Symbol('latchkey: execution')

interface Executing {
  [ofRequest]?: Remembered
}

export function rememberExecution(request: object & Executing, remembered: Remembered): void {
  request[ofRequest] = remembered
}

function rememberedOf(request: object & Executing): Remembered | undefined {
  return request[ofRequest]
}

/**
 * The execution under way for this request, typed by its operation: `const { tx } = executionOf(createOrder, request)`. On a
 * request that is not covered (another method, or without a key where that is allowed) there is no claim behind it.
 */
export function executionOf<X extends Execution, Request>(operation: Operation<X, Request>, request: object): X {
  const known = rememberedOf(request)
  if (known !== undefined && known.operation !== operation) {
    throw misconfigured(
      `${operation.name}: the request is executing ${known.execution.operation}. Ask with the operation of its @Idempotent()`,
    )
  }
  // Granted by this very operation.
  return known === undefined ? uncoveredExecution(operation) : (known.execution as X)
}

/**
 * The same as a parameter: `create(@Body() order: NewOrder, @LatchkeyExecution() { tx }: AtomicExecution<Tx>)`. Declare its type by the
 * kind of the operation; TypeScript cannot check it.
 */
export function LatchkeyExecution(): ParameterDecorator {
  return (prototype, method, index) => {
    if (method === undefined)
      throw misconfigured('@LatchkeyExecution() belongs to a parameter of a method, not of a constructor')
    addParameter({ prototype, method, index }, context =>
      context.getType() === 'http' ? rememberedOf(context.switchToHttp().getRequest())?.execution : undefined,
    )
  }
}

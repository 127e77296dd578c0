/** The execution of a request as a parameter of the controller's method. */
import { misconfigured } from '../../ports/errors.ts'
import type { ExecutionDecorator } from './driver.ts'
import { addExecutionParameter } from './metadata.ts'

/**
 * The execution as a parameter: `create(@Body() order: NewOrder, @LatchkeyExecution() { tx }: AtomicExecution<Tx>)`. Declare its type by
 * the kind of the operation; TypeScript cannot check it. Pipes do not see it: it exists when they have passed. On a request that is not
 * covered (another method, or without a key where that is allowed) there is no claim behind it. Without `@Idempotent()`, it is null.
 */
export function LatchkeyExecution(): ExecutionDecorator {
  return (prototype, method, index) => {
    if (method === undefined)
      throw misconfigured('@LatchkeyExecution() belongs on a parameter of a method, not of a constructor')
    addExecutionParameter({ prototype, method, index })
  }
}

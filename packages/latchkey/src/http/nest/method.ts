/** A controller's method with the claim in front of its body: behind guards and pipes, which may refuse the request without using the key up. */
import type { Execution } from '../../engine/execution.ts'
import { misconfigured } from '../../ports/errors.ts'
import { type Call, callOf } from './call.ts'
import { claimThenRun } from './claim.ts'
import { addRequestParameter, copyMetadata, type MethodName, parametersOf, requestIndex } from './metadata.ts'

type Method = (this: unknown, ...args: unknown[]) => unknown

/** The method to put in the place of this one. */
export function coveredMethod(name: MethodName, body: Method): Method {
  const { count, executions } = parametersOf(name)
  addRequestParameter(name)
  function covered(this: unknown, ...args: unknown[]): unknown {
    // Called by other code than Nest: by a test, or by a method that overrides it.
    if (args.length <= requestIndex) return Reflect.apply(body, this, args)
    const own = args.slice(0, count)
    const call = callWith(args[requestIndex], { name, expected: body.length, count })
    if (call === undefined) return Reflect.apply(body, this, own)
    return claimThenRun(call, (execution: Execution) => {
      for (const index of executions) own[index] = execution
      return Reflect.apply(body, this, own)
    })
  }
  copyMetadata(body, covered)
  for (const property of ['name', 'length'] as const) {
    Object.defineProperty(covered, property, { value: body[property], configurable: true })
  }
  return covered
}

interface Parameters {
  readonly name: MethodName
  readonly expected: number
  readonly count: number
}

/** Undefined outside of HTTP: `given` is then whatever the transport has in the place of a request. */
function callWith(given: unknown, { name, expected, count }: Parameters): Call | undefined {
  const isObject = typeof given === 'object' && given !== null
  const call = isObject ? callOf(given) : undefined
  if (call !== undefined) return call
  const method = `${name.prototype.constructor.name}.${String(name.method)}`
  if (isObject && ('rawHeaders' in given || 'raw' in given)) {
    throw misconfigured(
      `${method}: the interceptor of @Idempotent() did not run, so the request is not protected. A decorator of the method has ` +
        'replaced it and lost its metadata: put @Idempotent() above that one',
    )
  }
  if (count === 0 && expected > 0) {
    throw misconfigured(
      `${method}: outside of HTTP, @Idempotent() needs decorated parameters, such as @Payload(): Nest does not pass the others`,
    )
  }
  return undefined
}

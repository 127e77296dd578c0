/**
 * Nest 11 and 12, on Express and on Fastify.
 *
 *   const app = await NestFactory.create(AppModule, { rawBody: true })
 *
 *   @Post()
 *   @Idempotent(createOrder)
 *   create(@Body() order: NewOrder, @LatchkeyExecution() { tx }: AtomicExecution<Tx>) { … }
 *
 * Guards run before the claim. Pipes run after it, as they do after every interceptor of Nest: a validation pipe's 400 is an
 * answer of the operation and is stored. What is captured is the platform's response, so that exception filters, `@Res()`,
 * `@Redirect()`, streams and the interceptors around this one are in what is stored.
 */
import type { Execution } from '../../engine/execution.ts'
import type { Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { checkOperation } from '../exchange/check-operation.ts'
import type { Interceptor, MethodDecorator } from './driver.ts'
import { addInterceptor, interceptorsOf } from './metadata.ts'
import { visit } from './visit.ts'

export { corsHeaders } from '../../wire/headers.ts'
export type {
  CallHandler,
  Interceptor,
  MethodDecorator,
  NestContext,
  NestRequest,
  NestResponse,
  Observable,
  ParameterDecorator,
} from './driver.ts'
export { executionOf, LatchkeyExecution } from './execution.ts'
export { type Closable, type LatchkeyDynamicModule, LatchkeyModule, type LatchkeyModuleOptions } from './module.ts'

const ours = new WeakSet<object>()

/**
 * A controller's method that happens once per key. It brings its interceptor along, so that there is nothing to register and
 * nothing to forget. The operation's scope gets the platform's request.
 *
 * Put it above other `@UseInterceptors()` of the same method: then they are around it, a timeout among them is noticed, and the
 * claim comes as late as possible. Outside of HTTP (messages, web sockets, GraphQL) it does nothing.
 */
export function Idempotent<X extends Execution, Request>(operation: Operation<X, Request>): MethodDecorator {
  checkOperation(operation)
  const interceptor: Interceptor = {
    async intercept(context, next) {
      if (context.getType() !== 'http') return next.handle()
      // The scope's request is the platform's own, which Nest does not type either.
      return visit(operation as Operation<X, unknown>, context, next)
    },
  }
  ours.add(interceptor)
  return (_prototype, method, { value }) => {
    if (typeof value !== 'function') throw misconfigured(`${operation.name}: @Idempotent() belongs on a method`)
    if (interceptorsOf(value).some(one => typeof one === 'object' && one !== null && ours.has(one))) {
      throw misconfigured(`${operation.name}: ${String(method)} has two @Idempotent(), and a method is one operation`)
    }
    addInterceptor(value, interceptor)
  }
}

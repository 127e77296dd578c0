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
 * answer of the operation and is stored. The platform's response is captured, so what is stored includes the work of exception filters,
 * `@Res()`, `@Redirect()`, streams and the interceptors around this one.
 */
import type { Execution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { PhasedRoute } from '../exchange/phased-route.ts'
import { readRoute } from '../exchange/route.ts'
import type { LatchkeyInterceptor, RouteDecorator } from './driver.ts'
import { intercept, interceptPhased } from './intercept.ts'
import { addInterceptor, interceptorsOf } from './metadata.ts'

export { corsHeaders } from '../../wire/headers.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { executionOf } from '../../engine/execution.ts'
export type {
  ExecutionDecorator,
  HandlerStream,
  LatchkeyInterceptor,
  NestContext,
  NestRequest,
  NestResponse,
  NextHandler,
  RouteDecorator,
} from './driver.ts'
export { LatchkeyExecution } from './execution.ts'
export { type LatchkeyDynamicModule, LatchkeyModule, type LatchkeyModuleOptions, type ShutdownHost } from './module.ts'
export { StatusOf } from './status.ts'

const ours = new WeakSet<object>()

/**
 * Runs a controller's method once per key. The decorator adds its own interceptor, so there is nothing to register. The operation's scope
 * gets the platform's request. The execution is a parameter, `@LatchkeyExecution()`, or `executionOf(request)`.
 *
 * Put it above other `@UseInterceptors()` of the same method: then they run around it, a timeout among them is noticed, and the
 * request is claimed as late as possible. Outside of HTTP (messages, web sockets, GraphQL) it does nothing.
 */
export function Idempotent<X extends Execution, Request>(operation: Operation<X, Request>): RouteDecorator
/**
 * Phased: the definition is declared with the operation and takes the method's place, whose body is never called.
 *
 *   @Post()
 *   @UseGuards(Authenticated)
 *   @Idempotent(pay, { input: (request: Request) => ({ ...parsePayment(request.body), account: request.account }) })
 *   create(): void {}
 *
 * Guards and the interceptors above it run as always. Pipes, parameters, `@HttpCode()`, `@Header()` and the interceptors below it
 * belong to the body, so they do nothing here: check the request in a guard or in `input`. What the definition throws goes to the
 * exception filters, and a retry resumes after the last completed step. Outside of HTTP it throws.
 */
export function Idempotent<Input, Request>(
  operation: DefinedOperation<Input, Request>,
  route: PhasedRoute<Request, NoInfer<Input>>,
): RouteDecorator
export function Idempotent(
  operation: Operation<Execution, unknown> | DefinedOperation<unknown, unknown>,
  route?: PhasedRoute<unknown, unknown>,
): RouteDecorator {
  const interceptor = interceptorOf(operation, route)
  ours.add(interceptor)
  return (_prototype, method, { value }) => {
    if (typeof value !== 'function') throw misconfigured(`${operation.name}: @Idempotent() belongs on a method`)
    if (interceptorsOf(value).some(one => typeof one === 'object' && one !== null && ours.has(one))) {
      throw misconfigured(`${operation.name}: ${String(method)} has two @Idempotent(): a method is one operation`)
    }
    addInterceptor(value, interceptor)
  }
}

/** The scope's request is the platform's own, which Nest does not type either. */
function interceptorOf(
  operation: Operation<Execution, unknown> | DefinedOperation<unknown, unknown>,
  given: PhasedRoute<unknown, unknown> | undefined,
): LatchkeyInterceptor {
  const declared = readRoute(operation, given)
  if (declared.form === 'phased') {
    return { intercept: context => interceptPhased(declared.operation, declared.route, context) }
  }
  if (declared.form === 'handler')
    throw misconfigured(`${operation.name}: @Idempotent() takes no handler: the method is the handler`)
  return {
    async intercept(context, next) {
      return context.getType() === 'http' ? intercept(declared.operation, context, next) : next.handle()
    },
  }
}

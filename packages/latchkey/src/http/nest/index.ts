/**
 * Nest 11 and 12, on Express and on Fastify.
 *
 *   const app = await NestFactory.create(AppModule, { rawBody: true })
 *
 *   @Post()
 *   @Idempotent(createOrder)
 *   create(@Body() order: NewOrder, @LatchkeyExecution() { tx }: AtomicExecution<Tx>) { … }
 *
 * The key is claimed when the method is called. Guards and pipes come before that: what they refuse does not use the key up. The platform's
 * response is captured, so what is stored includes the work of exception filters, `@Res()`, `@Redirect()`, streams and interceptors.
 */
import type { Execution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { PhasedRoute } from '../exchange/phased-route.ts'
import { readRoute } from '../exchange/route.ts'
import type { MethodRoute } from './call.ts'
import type { InjectionToken, RouteDecorator } from './driver.ts'
import { getOperationToken, injectedInterceptor, isToken } from './injection.ts'
import { interceptorOf } from './intercept.ts'
import { addInterceptor, interceptorsOf } from './metadata.ts'
import { coveredMethod } from './method.ts'

export { corsHeaders, type KeyedOperation } from '../exchange/cors.ts'
export type { StatusHost, StatusOptions } from '../exchange/answers/status.ts'
export type { PhasedRoute } from '../exchange/phased-route.ts'
export { executionOf } from '../../engine/execution.ts'
export type {
  ExecutionDecorator,
  HandlerStream,
  InjectDecorator,
  InjectionToken,
  LatchkeyInterceptor,
  NestContext,
  NestProvider,
  NestRequest,
  NestResponse,
  NextHandler,
  RouteDecorator,
} from './driver.ts'
export { LatchkeyExecution } from './execution.ts'
export {
  getLatchkeyToken,
  getOperationToken,
  InjectLatchkey,
  InjectOperation,
  type ProvidedOperation,
  provideOperation,
} from './injection.ts'
export {
  type LatchkeyDynamicModule,
  LatchkeyModule,
  type LatchkeyModuleAsyncOptions,
  type LatchkeyModuleOptions,
  type ShutdownHost,
} from './module.ts'
export { StatusOf } from './status.ts'

const ours = new WeakSet<object>()

/**
 * Runs a controller's method once per key. The decorator needs nothing to be registered. The operation's scope gets the platform's request.
 * The execution is a parameter, `@LatchkeyExecution()`, or `executionOf(request)`.
 *
 * The key is claimed when the method is called, after guards, pipes and whatever interceptors do before it: what refuses the request there
 * leaves the key as it was. A retry passes them as well, and gets the stored answer even where a pipe refuses it, because the first
 * request changed what the pipe looks at.
 *
 * Put it above other `@UseInterceptors()` of the same method: then they run around it, and a timeout among them is noticed. Outside of HTTP
 * (messages, web sockets, GraphQL) it does nothing.
 */
export function Idempotent<X extends Execution, Request>(operation: Operation<X, Request>): RouteDecorator
/**
 * Phased: the definition is declared with the operation and takes the place of the method's body, which is never called.
 *
 *   @Post()
 *   @UseGuards(Authenticated)
 *   @Idempotent(pay, { input: (request: Request) => ({ ...request.body, account: request.account }) })
 *   create(@Body() payment: NewPayment): void {}
 *
 * Guards, interceptors and pipes run as always: declare the parameters that pipes shall check. `@HttpCode()` and `@Header()` belong to the
 * body, so they do nothing here. What the definition throws goes to the exception filters, and a retry resumes after the last completed
 * step. Outside of HTTP it throws.
 */
export function Idempotent<Input, Request>(
  operation: DefinedOperation<Input, Request>,
  route: PhasedRoute<Request, NoInfer<Input>>,
): RouteDecorator
/**
 * With an operation that Nest injects: `@Idempotent('orders.create')` is the one that `provideOperation` provides by this name; a symbol or a
 * class is a token of your own. With `{ input }` if it is phased or deferred. It is resolved when the application starts, in the
 * module of the controller.
 */
export function Idempotent<Request, Input>(token: InjectionToken, route?: PhasedRoute<Request, Input>): RouteDecorator
export function Idempotent(
  given: AnyOperation | InjectionToken,
  route?: PhasedRoute<unknown, unknown>,
): RouteDecorator {
  const interceptor = isToken(given)
    ? injectedInterceptor(tokenOf(given), (operation: AnyOperation) => interceptorOf(routeOf(operation, route)))
    : interceptorOf(routeOf(given, route))
  ours.add(interceptor)
  const name = isToken(given) ? String(given) : given.name
  return (prototype, method, descriptor) => {
    const { value } = descriptor
    if (typeof value !== 'function') throw misconfigured(`${name}: @Idempotent() belongs on a method`)
    if (interceptorsOf(value).some(one => isObject(one) && ours.has(one))) {
      throw misconfigured(`${name}: ${String(method)} has two @Idempotent(): a method is one operation`)
    }
    descriptor.value = coveredMethod({ prototype, method }, value)
    addInterceptor(descriptor.value, interceptor)
  }
}

type AnyOperation = Operation<Execution, unknown> | DefinedOperation<unknown, unknown>

function tokenOf(given: InjectionToken): InjectionToken {
  return typeof given === 'string' ? getOperationToken(given) : given
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** The scope's request is the platform's own, which Nest does not type either. */
function routeOf(operation: AnyOperation, given: PhasedRoute<unknown, unknown> | undefined): MethodRoute {
  const route = readRoute<Execution, unknown, never>(operation, given)
  if (route.form === 'handler')
    throw misconfigured(`${operation.name}: @Idempotent() takes no handler: the method is the handler`)
  return route
}

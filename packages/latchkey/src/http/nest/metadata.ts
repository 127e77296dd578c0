/** Nest's metadata of a controller's methods. The keys are the same in Nest 11 and 12; the tests run on both. */
import { misconfigured } from '../../ports/errors.ts'
import type { LatchkeyInterceptor, MetadataReflect, NestContext } from './driver.ts'

const interceptorsKey = '__interceptors__'
const headersKey = '__headers__'
const argumentsKey = '__routeArguments__'
const customArgument = '__customRouteArgs__'

function reflect(): MetadataReflect {
  if (!('defineMetadata' in Reflect)) {
    throw misconfigured("reflect-metadata is not loaded: import 'reflect-metadata' first, which Nest needs as well")
  }
  // It adds both functions or neither.
  return Reflect as unknown as MetadataReflect
}

/** As `@UseInterceptors` does: the last one added is the innermost. */
export function addInterceptor(method: object, interceptor: LatchkeyInterceptor): void {
  const known = reflect().getMetadata(interceptorsKey, method)
  reflect().defineMetadata(interceptorsKey, [...listOf(known), interceptor], method)
}

export function interceptorsOf(method: object): readonly unknown[] {
  return listOf(reflect().getMetadata(interceptorsKey, method))
}

/** The names that `@Header()` sets. Nest sets them before any interceptor runs. */
export function declaredHeaderNames(method: object): string[] {
  return listOf(reflect().getMetadata(headersKey, method)).flatMap(one =>
    typeof one === 'object' && one !== null && 'name' in one && typeof one.name === 'string' ? [one.name] : [],
  )
}

interface Parameter {
  readonly prototype: object
  readonly method: string | symbol
  readonly index: number
}

/** As `createParamDecorator` does. */
export function addParameter({ prototype, method, index }: Parameter, value: (context: NestContext) => unknown): void {
  const { constructor } = prototype
  const known = reflect().getMetadata(argumentsKey, constructor, method)
  const factory = (_data: unknown, context: NestContext) => value(context)
  const own = { [`latchkey${customArgument}:${index}`]: { index, factory, data: undefined, pipes: [] } }
  reflect().defineMetadata(argumentsKey, { ...(known ?? {}), ...own }, constructor, method)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

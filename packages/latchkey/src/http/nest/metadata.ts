/** Nest's metadata of a controller's methods. The keys are the same in Nest 11 and 12; the tests run on both. */
import { misconfigured } from '../../ports/errors.ts'
import type { MetadataReflect } from './driver.ts'

const interceptorsKey = '__interceptors__'
const headersKey = '__headers__'
const argumentsKey = '__routeArguments__'

export function reflect(): MetadataReflect {
  if (!('defineMetadata' in Reflect)) {
    throw misconfigured("reflect-metadata is not loaded: import 'reflect-metadata' first, which Nest needs as well")
  }
  // It adds all of its functions or none.
  return Reflect as unknown as MetadataReflect
}

/** As `@UseInterceptors` does: the last one added is the innermost. A class is made by Nest, with what it injects. */
export function addInterceptor(method: object, interceptor: object): void {
  const known = reflect().getMetadata(interceptorsKey, method)
  reflect().defineMetadata(interceptorsKey, [...listOf(known), interceptor], method)
}

export function interceptorsOf(method: object): readonly unknown[] {
  return listOf(reflect().getMetadata(interceptorsKey, method))
}

/** For a method that takes the place of another one: decorators below ours have put their metadata there. */
export function copyMetadata(from: object, to: object): void {
  const { getOwnMetadataKeys, getMetadata, defineMetadata } = reflect()
  for (const key of getOwnMetadataKeys(from)) defineMetadata(key, getMetadata(key, from), to)
}

/** The names that `@Header()` sets. Nest sets them before any interceptor runs. */
export function declaredHeaderNames(method: object): string[] {
  return listOf(reflect().getMetadata(headersKey, method)).flatMap(one =>
    typeof one === 'object' && one !== null && 'name' in one && typeof one.name === 'string' ? [one.name] : [],
  )
}

export interface MethodName {
  readonly prototype: object
  readonly method: string | symbol
}

interface Parameter extends MethodName {
  readonly index: number
}

/** Nest's number for `@Req()`. */
const requestType = '0'
/** None of Nest's numbers, so Nest passes null, and no pipe sees it. */
const executionType = 'latchkey'

/** Past the parameters of any method. A method of a subclass may have more of them than the one it overrides, so it is fixed. */
export const requestIndex = 31

/** The request as one more argument, as `@Req()` does: the method cannot learn in another way which request calls it. */
export function addRequestParameter(name: MethodName): void {
  addParameter({ ...name, index: requestIndex }, requestType)
}

/** A place that the covered method fills, once it has claimed. */
export function addExecutionParameter(parameter: Parameter): void {
  addParameter(parameter, executionType)
}

function addParameter({ prototype, method, index }: Parameter, type: string): void {
  const own = { [`${type}:${index}`]: { index, data: undefined, pipes: [] } }
  reflect().defineMetadata(
    argumentsKey,
    { ...argumentsOf({ prototype, method }), ...own },
    prototype.constructor,
    method,
  )
}

/** How many arguments Nest passes to the method without ours, and which of them are executions. Parameters are decorated before methods. */
export function parametersOf(name: MethodName): { readonly count: number; readonly executions: readonly number[] } {
  const declared = Object.keys(argumentsOf(name))
    .map(key => key.split(':'))
    .map(([type, index]) => ({ type, index: Number(index) }))
    .filter(({ index }) => index !== requestIndex)
  return {
    count: Math.max(-1, ...declared.map(({ index }) => index)) + 1,
    executions: declared.filter(({ type }) => type === executionType).map(({ index }) => index),
  }
}

function argumentsOf({ prototype, method }: MethodName): object {
  const known = reflect().getMetadata(argumentsKey, prototype.constructor, method)
  return typeof known === 'object' && known !== null ? known : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

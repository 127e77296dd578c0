/** Latchkey and its operations as providers of Nest's own container. */
import type { DeclaredOperation } from '../../engine/operation.ts'
import { type Check, checkOptions, type ChecksOf, shown } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable, listOf } from '../../ports/option-kinds.ts'
import type { InjectDecorator, InjectionToken, LatchkeyInterceptor, NestProvider } from './driver.ts'
import { reflect } from './metadata.ts'

const latchkeyToken = 'latchkey'

/** The token of the Latchkey that `LatchkeyModule` provides. For tests that override it, and for providers of your own. */
export function getLatchkeyToken(): string {
  return latchkeyToken
}

/** The token of an operation that `provideOperation` provides. */
export function getOperationToken(name: string): string {
  return `${latchkeyToken}:${name}`
}

/** `constructor(@InjectLatchkey() latchkey: Latchkey<PoolClient, Request>)`, or on a property. */
export function InjectLatchkey(): InjectDecorator {
  return inject(getLatchkeyToken())
}

/** `constructor(@InjectOperation('orders.create') createOrder: AtomicOperation<PoolClient, Request>)`, or on a property. */
export function InjectOperation(name: string): InjectDecorator {
  return inject(getOperationToken(name))
}

export interface ProvidedOperation {
  /** The name of the operation, by which `@Idempotent(name)` and `@InjectOperation(name)` find it. */
  readonly name: string
  /** What the factory gets after the Latchkey. Default none. */
  readonly inject?: readonly InjectionToken[]
  /** Declares the operation: `(latchkey: Latchkey<Tx, Request>, ...injected) => latchkey.atomic(name)`. */
  readonly useFactory: (
    latchkey: never,
    ...injected: never[]
  ) => DeclaredOperation<never> | Promise<DeclaredOperation<never>>
}

export function isToken(value: unknown): value is InjectionToken {
  return typeof value === 'string' || typeof value === 'symbol' || typeof value === 'function'
}

export const token: Check = { wants: 'an injection token: a class, a string or a symbol', fits: isToken }

const operationChecks: ChecksOf<ProvidedOperation> = {
  name: { wants: 'the name of an operation', fits: value => typeof value === 'string' && value !== '' },
  inject: listOf(token),
  useFactory: callable,
}

/**
 * A provider that declares an operation when the application starts, with the Latchkey of `LatchkeyModule`:
 *
 *   providers: [provideOperation({ name: 'orders.create', useFactory: (latchkey: Latchkey<Tx, Request>) => latchkey.atomic('orders.create') })]
 *
 * Export it from its module, `exports: [getOperationToken('orders.create')]`, to use it in others.
 */
export function provideOperation(given: ProvidedOperation): NestProvider {
  checkOptions('provideOperation', given, operationChecks)
  const { name, inject: injected = [], useFactory } = given
  if (name === undefined || useFactory === undefined) throw misconfigured('provideOperation needs name and useFactory')
  return {
    provide: getOperationToken(name),
    inject: [getLatchkeyToken(), ...injected],
    useFactory: async (latchkey: never, ...rest: never[]) => named(name, await useFactory(latchkey, ...rest)),
  }
}

/** Found by one name and stored under another, its rows would be searched for in vain. */
function named(name: string, operation: DeclaredOperation<never>): DeclaredOperation<never> {
  const got: unknown = operation?.name
  if (got === name) return operation
  throw misconfigured(
    `provideOperation: the factory of ${name} must return the operation of this name (got ${shown(got)})`,
  )
}

const constructorKey = 'self:paramtypes'
const propertiesKey = 'self:properties_metadata'

/** As `@Inject()` does. */
function inject(param: InjectionToken): InjectDecorator {
  return (target, property, index) => {
    const { getMetadata, defineMetadata } = reflect()
    const known = (key: string, of: object): unknown[] => [getMetadata(key, of) ?? []].flat()
    if (index !== undefined) {
      return defineMetadata(constructorKey, [...known(constructorKey, target), { index, param }], target)
    }
    const { constructor } = target
    defineMetadata(propertiesKey, [...known(propertiesKey, constructor), { key: property, type: param }], constructor)
  }
}

/** An interceptor that Nest makes when the application starts, once it has made what the token names. */
export function injectedInterceptor<T>(
  param: InjectionToken,
  make: (injected: T) => LatchkeyInterceptor,
): new (injected: T) => LatchkeyInterceptor {
  class Injected implements LatchkeyInterceptor {
    readonly intercept: LatchkeyInterceptor['intercept']
    constructor(injected: T) {
      this.intercept = make(injected).intercept
    }
  }
  // In Nest's message where the provider is missing.
  Object.defineProperty(Injected, 'name', { value: `Latchkey(${String(param)})` })
  reflect().defineMetadata('design:paramtypes', [Object], Injected)
  inject(param)(Injected, undefined, 0)
  return Injected
}

/** The few members of Nest, rxjs and reflect-metadata that the adapter uses, typed by shape: installing Latchkey installs none of them. */
import type { NodeBodyRequest } from '../node/request.ts'
import type { HeaderValue, NodeResponse } from '../node/driver.ts'

export interface NestContext {
  /** `http`, `rpc`, `ws`, `graphql` … */
  getType(): string
  /** The controller's method. */
  getHandler(): object
  switchToHttp(): NestHttp
}

export interface NestHttp {
  getRequest(): NestRequest
  getResponse(): NestResponse
}

interface Parsed {
  readonly body?: unknown
  /** Set with `NestFactory.create(AppModule, { rawBody: true })`. */
  readonly rawBody?: unknown
}

/** Express's request is Node's own; Fastify's wraps it. */
export type NestRequest = Parsed & (NodeBodyRequest | { readonly raw: NodeBodyRequest })
export type NestResponse = NodeResponse | NestFastifyReply

export interface NestFastifyReply {
  readonly raw: NodeResponse
  /** Ended, or hijacked. */
  readonly sent: boolean
  getHeader(name: string): HeaderValue | undefined
  /** What was set on the reply, over what was set on `raw`. */
  getHeaders(): Record<string, HeaderValue | undefined>
  header(name: string, value: HeaderValue): unknown
  removeHeader(name: string): unknown
  /** From now on Fastify itself sends nothing. */
  hijack(): unknown
}

export interface StreamObserver {
  next(value: unknown): void
  error(error: unknown): void
  complete(): void
}

export interface StreamSubscription {
  unsubscribe(): void
}

/** The part of rxjs's Observable that is used. */
export interface HandlerStream {
  subscribe(observer: StreamObserver): StreamSubscription
}

export interface NextHandler {
  handle(): HandlerStream
}

export interface LatchkeyInterceptor {
  intercept(context: NestContext, next: NextHandler): Promise<HandlerStream>
}

/** What reflect-metadata adds to `Reflect`. */
export interface MetadataReflect {
  defineMetadata(key: unknown, value: unknown, target: object, property?: string | symbol): void
  getMetadata(key: unknown, target: object, property?: string | symbol): unknown
  getOwnMetadataKeys(target: object): unknown[]
}

/** What Nest finds a provider by. */
export type InjectionToken = string | symbol | (abstract new (...args: never[]) => unknown)

/** A provider as Nest reads it. */
export type NestProvider =
  | { readonly provide: InjectionToken; readonly useValue: unknown }
  | {
      readonly provide: InjectionToken
      readonly inject: InjectionToken[]
      readonly useFactory: (...injected: never[]) => unknown
    }

/** Decorators as TypeScript calls them under `experimentalDecorators`. */
export type RouteDecorator = (prototype: object, method: string | symbol, descriptor: PropertyDescriptor) => void
export type ExecutionDecorator = (prototype: object, method: string | symbol | undefined, index: number) => void
/** On a constructor's parameter, where `target` is the class, or on a property. */
export type InjectDecorator = (target: object, property: string | symbol | undefined, index?: number) => void

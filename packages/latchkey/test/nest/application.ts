/** One Nest application per test, with whatever version and platform the library has. */
import type * as NestCommon from '@nestjs/common'
import type { Class, NestLibrary } from '../http/nest.ts'
import { decorate, listening, moduleOf } from '../http/nest.ts'
import { createLatchkey, type Latchkey } from '../../src/engine/latchkey.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'

export interface TestApplication {
  readonly store: Store
  readonly latchkey: Latchkey<unknown, unknown>
  /** Starts the application with these controllers. */
  serve(controllers: Class[], more?: Serving): Promise<void>
  post(options?: Asked): Promise<Response>
  get(path: string): Promise<Response>
  /** Of the row of the key `k` of orders.create. */
  rowState(): Promise<string | undefined>
  close(): Promise<void>
}

export interface Serving {
  readonly module?: NestCommon.ModuleMetadata
  readonly setup?: (app: NestCommon.INestApplication) => void
}

export interface Asked {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

export function testApplication(nest: NestLibrary): TestApplication {
  const store = memoryStore()
  const latchkey = createLatchkey<unknown, unknown>({ store, scope: () => 'acme' })
  let app: { url: string; close(): Promise<void> } | undefined
  return {
    store,
    latchkey,
    async serve(controllers, { module = {}, setup = () => {} } = {}) {
      const made = await nest.create(moduleOf(nest, controllers, module))
      setup(made)
      app = await listening(made)
    },
    post({ path = '/orders', headers = {}, body = { sku: 1 } } = {}) {
      const all = { 'content-type': 'application/json', 'idempotency-key': 'k', ...headers }
      return fetch(`${app?.url}${path}`, { method: 'POST', headers: all, body: JSON.stringify(body) })
    },
    get: path => fetch(`${app?.url}${path}`),
    async rowState() {
      const id = latchkey.identify({ scope: 'acme', operation: 'orders.create', key: 'k' })
      return (await store.read(id))?.state
    },
    async close() {
      await app?.close()
      app = undefined
      await latchkey.close()
    },
  }
}

export interface ControllerSpec {
  readonly handle: (...args: never[]) => unknown
  /** Lowest first, as TypeScript applies them. */
  readonly decorators: readonly MethodDecorator[]
  readonly parameters?: readonly ParameterDecorator[]
  /** What TypeScript notes of the parameters' types. */
  readonly types?: readonly unknown[]
  readonly options?: NestCommon.ControllerOptions
}

/** A controller with one POST /orders, decorated in TypeScript's order: parameters first. */
export function ordersController({ common }: NestLibrary, spec: ControllerSpec): Class {
  const { handle, decorators, parameters = [], types = [], options = {} } = spec
  class Orders {}
  Object.defineProperty(Orders.prototype, 'handle', { value: handle, writable: true, configurable: true })
  Reflect.defineMetadata('design:paramtypes', types, Orders.prototype, 'handle')
  parameters.forEach((one, index) => one(Orders.prototype, 'handle', index))
  decorate(Orders, 'handle', [...decorators, common.Post('orders')])
  common.Controller(options)(Orders)
  return Orders
}

export function isReplay(response: Response): boolean {
  return response.headers.get('Idempotent-Replayed') === 'true'
}

export async function problemType(response: Response): Promise<unknown> {
  return ((await response.json()) as { type: unknown }).type // every problem has one
}

/** Latchkey and its operations by Nest's dependency injection. */
import 'reflect-metadata'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLatchkey, type Latchkey } from '../../src/engine/latchkey.ts'
import type { DeferredOperation, GuardedOperation } from '../../src/engine/operation.ts'
import {
  getLatchkeyToken,
  getOperationToken,
  Idempotent,
  InjectLatchkey,
  InjectOperation,
  LatchkeyModule,
  provideOperation,
  StatusOf,
} from '../../src/http/nest/index.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { type Class, decorate, moduleOf, type NestLibrary } from '../http/nest.ts'
import { isReplay, ordersController, type TestApplication, testApplication } from './application.ts'

const databaseToken = Symbol('a database')
const hold = { onFailure: 'hold' } as const

type AnyLatchkey = Latchkey<unknown, unknown>

export function itInjectsOperations(name: string, nest: NestLibrary): void {
  const { common } = nest
  let app: TestApplication
  let made: AnyLatchkey[]

  beforeEach(() => {
    app = testApplication(nest)
    made = []
  })
  afterEach(() => app.close())

  function databaseModule(): Class {
    const database = { provide: databaseToken, useValue: memoryStore() }
    return moduleOf(nest, [], { providers: [database], exports: [databaseToken] })
  }

  const root = () =>
    LatchkeyModule.forRootAsync({
      imports: [databaseModule()],
      inject: [databaseToken],
      useFactory(store: Store) {
        const latchkey = createLatchkey<unknown, unknown>({ store, scope: () => 'acme' })
        made.push(latchkey)
        return latchkey
      },
    })

  const orders = provideOperation({
    name: 'orders.create',
    useFactory: (latchkey: AnyLatchkey) => latchkey.guarded('orders.create', hold),
  })

  describe(`operations that ${name} injects`, () => {
    it('are made from what the modules provide, run once, and are closed with the application', async () => {
      let runs = 0
      const decorators = [Idempotent('orders.create')]
      const controller = ordersController(nest, { handle: () => ({ run: ++runs }), decorators })
      await app.serve([controller], { module: { imports: [root()], providers: [orders] } })
      const [first, again] = [await app.post(), await app.post()]
      expect([first.status, isReplay(first), isReplay(again), runs]).toEqual([201, false, true, 1])
      await app.close()
      expect(made).toHaveLength(1)
      const late = made[0]?.guarded('orders.create', hold).run({ scope: 'acme', key: 'k2', input: 1 }, () => 'ran')
      await expect(late).rejects.toMatchObject({ cause: { message: 'Latchkey is closed' } })
    })

    it('are found by a constructor and by a property', async () => {
      class Clerk {
        readonly latchkey: AnyLatchkey
        readonly byProperty: GuardedOperation | undefined
        constructor(latchkey: AnyLatchkey) {
          this.latchkey = latchkey
        }
        handle() {
          return { operation: this.byProperty?.name, same: this.latchkey === made[0] }
        }
      }
      Reflect.defineMetadata('design:paramtypes', [Object], Clerk)
      InjectLatchkey()(Clerk, undefined, 0)
      InjectOperation('orders.create')(Clerk.prototype, 'byProperty')
      decorate(Clerk as unknown as Class, 'handle', [common.Get('clerk')])
      common.Controller()(Clerk)
      // Nest gives the constructor what it asks for.
      await app.serve([Clerk as unknown as Class], { module: { imports: [root()], providers: [orders] } })
      expect(await (await app.get('/clerk')).json()).toEqual({ operation: 'orders.create', same: true })
    })

    it('get what their factory injects, also as deferred work with its status', async () => {
      const deferred = provideOperation({
        name: 'reports.create',
        inject: [databaseToken],
        useFactory: async (latchkey: AnyLatchkey, store: Store): Promise<DeferredOperation<{ name: string }>> =>
          latchkey.deferred('reports.create', { deadlineMs: 60_000 }, async () => ({
            status: 201,
            headers: [],
            body: new TextEncoder().encode(store.name),
            version: 0,
          })),
      })
      class Reports {
        create(): void {}
        status(): void {}
      }
      const input = (request: { body: { name: string } }) => request.body
      decorate(Reports, 'create', [Idempotent('reports.create', { input }), common.Post('orders')])
      decorate(Reports, 'status', [StatusOf(getLatchkeyToken()), common.Get('operations/:id')])
      common.Controller()(Reports)
      const imports = [root(), databaseModule()]
      await app.serve([Reports], { module: { imports, providers: [deferred] } })
      const accepted = await app.post({ body: { name: 'may' } })
      expect(accepted.status).toBe(202)
      const status = await app.get(accepted.headers.get('location') ?? '')
      expect(await status.json()).toMatchObject({ operation: 'reports.create', state: 'pending' })
    })

    it('may have a token of their own', async () => {
      const token = Symbol('our orders')
      const useFactory = (latchkey: AnyLatchkey) => latchkey.guarded('orders.create', hold)
      const provider = { provide: token, inject: [getLatchkeyToken()], useFactory }
      const controller = ordersController(nest, { handle: () => 'made', decorators: [Idempotent(token)] })
      const imports = [LatchkeyModule.forRoot({ latchkey: app.latchkey })]
      await app.serve([controller], { module: { imports, providers: [provider] } })
      expect([isReplay(await app.post()), isReplay(await app.post())]).toEqual([false, true])
    })

    it('stop the start of the application where they are not provided', async () => {
      const controller = ordersController(nest, { handle: () => 'made', decorators: [Idempotent('orders.create')] })
      const started = app.serve([controller], { module: { imports: [root()] } })
      await expect(started).rejects.toThrow(getOperationToken('orders.create'))
    })

    it('stop the start of the application where a factory returns something else', async () => {
      const misnamed = provideOperation({
        name: 'orders.create',
        useFactory: (latchkey: AnyLatchkey) => latchkey.guarded('orders.make', hold),
      })
      const started = app.serve([], { module: { imports: [root()], providers: [misnamed] } })
      await expect(started).rejects.toThrow("must return the operation of this name (got 'orders.make')")
      const nothing = LatchkeyModule.forRootAsync({ useFactory: () => ({}) as AnyLatchkey })
      const again = app.serve([], { module: { imports: [nothing] } })
      await expect(again).rejects.toThrow('latchkey must be what createLatchkey returned')
    })
  })
}

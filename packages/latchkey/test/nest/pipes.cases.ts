/** Guards, pipes and interceptors come before the claim; what they refuse does not use the key up. */
import 'reflect-metadata'
import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import type * as NestCommon from '@nestjs/common'
import { IsInt } from 'class-validator'
import { retry, timeout } from 'rxjs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Execution } from '../../src/engine/execution.ts'
import { json } from '../../src/engine/steps/json.ts'
import { Idempotent, LatchkeyExecution } from '../../src/http/nest/index.ts'
import type { NestLibrary } from '../http/nest.ts'
import { type ControllerSpec, isReplay, ordersController, problemType } from './application.ts'
import { type TestApplication, testApplication } from './application.ts'

class NewOrder {
  sku: unknown
}
IsInt()(NewOrder.prototype, 'sku')

const hold = { onFailure: 'hold' } as const

export function itClaimsInTheMethod(name: string, nest: NestLibrary): void {
  const { common } = nest
  let app: TestApplication
  let runs: number

  beforeEach(() => {
    app = testApplication(nest)
    runs = 0
  })
  afterEach(() => app.close())

  const operation = () => app.latchkey.guarded('orders.create', hold)
  const counted = () => ({ run: ++runs })
  const covered = (spec: Partial<ControllerSpec> = {}) =>
    ordersController(nest, { handle: counted, decorators: spec.decorators ?? [Idempotent(operation())], ...spec })
  const refusing = (refuse: () => Error | undefined | Promise<Error | undefined>): NestCommon.PipeTransform => ({
    async transform(value: unknown) {
      const error = await refuse()
      if (error !== undefined) throw error
      return value
    },
  })

  async function expectOnce(): Promise<Response> {
    const [first, again] = [await app.post(), await app.post()]
    expect([first.status, isReplay(first), isReplay(again), runs]).toEqual([201, false, true, 1])
    expect(await again.text()).toBe(await first.clone().text())
    return first
  }

  describe(`a pipe on ${name}`, () => {
    it('refuses without using the key up: the corrected request runs under it', async () => {
      const controller = covered({ parameters: [common.Body()], types: [NewOrder] })
      await app.serve([controller], { setup: one => void one.useGlobalPipes(new common.ValidationPipe()) })
      const refused = await app.post({ body: { sku: 'tea' } })
      expect([refused.status, await refused.json()]).toMatchObject([400, { message: [expect.stringContaining('sku')] }])
      expect([await app.rowState(), runs]).toEqual([undefined, 0])
      await expectOnce()
      expect(await app.rowState()).toBe('completed')
    })

    it('leaves no row either when it fails, although the operation holds its failures', async () => {
      let isBroken = true
      const pipe = refusing(() => (isBroken ? new Error('the catalogue is away') : undefined))
      await app.serve([covered({ parameters: [common.Body(pipe)] })])
      expect([(await app.post()).status, await app.rowState()]).toEqual([500, undefined])
      isBroken = false
      await expectOnce()
    })

    it('does not keep a retry from its answer by refusing what the first request made', async () => {
      const pipe = refusing(() => (runs > 0 ? new common.ConflictException('the name is taken') : undefined))
      await app.serve([covered({ parameters: [common.Body(pipe)] })])
      await expectOnce()
      const misuse = await app.post({ body: { sku: 2 } })
      expect([misuse.status, await problemType(misuse)]).toEqual([422, 'urn:latchkey:problem:key-reused'])
      const fresh = await app.post({ headers: { 'idempotency-key': 'k2' } })
      expect([fresh.status, runs]).toEqual([409, 1])
      expect(await fresh.json()).toMatchObject({ message: 'the name is taken' })
    })

    it('refuses a duplicate of a request that runs as in progress', async () => {
      let finish = () => {}
      const handle = () => {
        runs += 1
        return new Promise(resolve => (finish = () => resolve('made')))
      }
      const pipe = refusing(() => (runs > 0 ? new common.ConflictException('the name is taken') : undefined))
      await app.serve([covered({ handle, parameters: [common.Body(pipe)] })])
      const first = app.post()
      await expect.poll(() => runs).toBe(1)
      expect(await problemType(await app.post())).toBe('urn:latchkey:problem:in-progress')
      finish()
      expect([(await first).status, isReplay(await app.post())]).toEqual([201, true])
    })

    it('does not see the execution, which is a parameter of the method', async () => {
      const seen: unknown[] = []
      const pipe = { transform: (value: unknown) => (seen.push(value), value) }
      const handle = ({ key }: Execution, order: unknown) => ({ key, order, runs: ++runs })
      const decorators = [Idempotent(operation()), common.UsePipes(pipe)]
      await app.serve([covered({ handle, decorators, parameters: [LatchkeyExecution(), common.Body()] })])
      expect(await (await expectOnce()).json()).toEqual({ key: 'k', order: { sku: 1 }, runs: 1 })
      expect(seen).toEqual([{ sku: 1 }, { sku: 1 }])
    })

    it('comes before phased work as well, and its definition does not begin', async () => {
      let begun = 0
      const pay = app.latchkey.phased<{ sku: number }>('orders.create', { version: 1 }, async (_execution, { sku }) => {
        begun += 1
        return json(201, { sku })
      })
      const decorators = [Idempotent(pay, { input: ({ body }: { body: { sku: number } }) => body })]
      const spec = { handle: counted, decorators, parameters: [common.Body()], types: [NewOrder] }
      await app.serve([ordersController(nest, spec)], {
        setup: one => void one.useGlobalPipes(new common.ValidationPipe()),
      })
      const refused = await app.post({ body: { sku: 'tea' } })
      expect([refused.status, await app.rowState(), begun]).toEqual([400, undefined, 0])
      const [first, again] = [await app.post(), await app.post()]
      expect([first.status, await first.json(), isReplay(again), begun, runs]).toEqual([201, { sku: 1 }, true, 1, 0])
    })

    it('keeps the method from running after a timeout around it has answered', async () => {
      let pass = () => {}
      const pipe = refusing(() => new Promise<undefined>(resolve => (pass = () => resolve(undefined))))
      const around: NestCommon.NestInterceptor = { intercept: (_, next) => next.handle().pipe(timeout(50)) }
      await app.serve([covered({ parameters: [common.Body(pipe)] })], {
        setup: one => void one.useGlobalInterceptors(around),
      })
      expect((await app.post()).status).toBe(500)
      pass()
      await new Promise(resolve => setTimeout(resolve, 50))
      expect([runs, await app.rowState()]).toEqual([0, undefined])
    })
  })

  describe(`the claim of a method on ${name}`, () => {
    it('is given back when a timeout has answered while it waited for a duplicate', async () => {
      let fail = () => {}
      const handle = () => {
        runs += 1
        if (runs > 1) return 'made'
        return new Promise((_, reject) => (fail = () => reject(new Error('no stock'))))
      }
      const around: NestCommon.NestInterceptor = {
        intercept(context, next) {
          const isImpatient = context.switchToHttp().getRequest().headers['x-impatient'] !== undefined
          return isImpatient ? next.handle().pipe(timeout(50)) : next.handle()
        },
      }
      const waiting = app.latchkey.guarded('orders.create', { onFailure: 'rerun', onInProgress: 'wait' })
      await app.serve([covered({ handle, decorators: [Idempotent(waiting)] })], {
        setup: one => void one.useGlobalInterceptors(around),
      })
      const first = app.post()
      await expect.poll(() => runs).toBe(1)
      expect((await app.post({ headers: { 'x-impatient': 'yes' } })).status).toBe(500)
      fail()
      expect((await first).status).toBe(500)
      await expect.poll(() => app.rowState()).not.toBe('in_progress')
      // Longer than the waiter pauses between two looks.
      await new Promise(resolve => setTimeout(resolve, 300))
      expect([runs, (await app.post()).status, runs]).toEqual([1, 201, 2])
    })

    it('is not made for a request that an interceptor below it refuses', async () => {
      let isClosed = true
      const below: NestCommon.NestInterceptor = {
        intercept(_, next) {
          if (isClosed) throw new common.ServiceUnavailableException('closed for lunch')
          return next.handle()
        },
      }
      // The last interceptor that is added is the innermost.
      await app.serve([covered({ decorators: [Idempotent(operation()), common.UseInterceptors(below)] })])
      expect([(await app.post()).status, await app.rowState()]).toEqual([503, undefined])
      isClosed = false
      await expectOnce()
    })

    it('is kept while an interceptor below it calls the method again', async () => {
      const handle = () => {
        runs += 1
        if (runs === 1) throw new Error('a deadlock, for example')
        return { runs }
      }
      const below: NestCommon.NestInterceptor = { intercept: (_, next) => next.handle().pipe(retry(1)) }
      await app.serve([covered({ handle, decorators: [Idempotent(operation()), common.UseInterceptors(below)] })])
      const [first, again] = [await app.post(), await app.post()]
      expect([first.status, await first.json(), isReplay(again), runs]).toEqual([201, { runs: 2 }, true, 2])
    })

    it('leaves the asynchronous context of the request alone', async () => {
      const user = new AsyncLocalStorage<string>()
      const around: NestCommon.NestInterceptor = { intercept: (_, next) => user.run('ann', () => next.handle()) }
      const handle = () => ({ user: user.getStore(), runs: ++runs })
      await app.serve([covered({ handle })], { setup: one => void one.useGlobalInterceptors(around) })
      expect(await (await expectOnce()).json()).toEqual({ user: 'ann', runs: 1 })
    })

    const forms: Record<string, () => Partial<ControllerSpec>> = {
      'a request-scoped controller': () => ({ options: { scope: common.Scope.REQUEST } }),
      '@Res()': () => ({
        handle: (response: { status(code: number): { send(body: unknown): void } }) =>
          response.status(201).send(counted()),
        parameters: [common.Res()],
      }),
      '@Res({ passthrough: true })': () => ({
        handle(response: { header(name: string, value: string): void }) {
          response.header('X-Form', 'passthrough')
          return counted()
        },
        parameters: [common.Res({ passthrough: true })],
      }),
      'a stream': () => ({
        handle: () => new common.StreamableFile(Readable.from([Buffer.from(JSON.stringify(counted()))])),
      }),
      'a promise': () => ({ handle: async () => counted() }),
    }
    it.each(Object.keys(forms))('is made once for %s', async form => {
      await app.serve([covered(forms[form]?.())])
      expect(await (await expectOnce()).json()).toEqual({ run: 1 })
    })

    it('is made once under a global prefix and a version', async () => {
      await app.serve([covered({ options: { version: '2' } })], {
        setup: one => void one.setGlobalPrefix('api').enableVersioning({ type: common.VersioningType.URI }),
      })
      const ask = () => app.post({ path: '/api/v2/orders' })
      const [first, again] = [await ask(), await ask()]
      expect([first.status, isReplay(again), runs]).toEqual([201, true, 1])
    })

    it('is refused where another decorator has lost the interceptor', async () => {
      const careless: MethodDecorator = (_prototype, _method, descriptor) => {
        const { value } = descriptor
        if (typeof value !== 'function') return
        // The metadata of the method that it replaces is gone.
        descriptor.value = function (this: unknown, ...args: unknown[]) {
          return Reflect.apply(value, this, args)
        } as never
      }
      await app.serve([covered({ decorators: [Idempotent(operation()), careless] })])
      expect([(await app.post()).status, runs]).toEqual([500, 0])
    })
  })
}

import 'reflect-metadata'
import type { ServerResponse } from 'node:http'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { finalize, map, timeout } from 'rxjs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { reportsInto } from '../../../test/http/parsed-bodies.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import { type Class, decorate, listening, moduleOf, type NestLibrary } from '../../../test/http/nest.ts'
import type { AtomicExecution, Execution } from '../../engine/execution.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import type { Store } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { executionOf, Idempotent, LatchkeyExecution, LatchkeyModule, type NestContext } from './index.ts'
import { interceptorsOf } from './metadata.ts'

let store: Store
let latchkey: Latchkey<unknown, unknown>
let logged: string[]
let reports: string[]
let app: { url: string; close(): Promise<void> } | undefined

beforeEach(() => {
  store = memoryStore()
  reports = []
  latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: reportsInto(reports) })
  logged = []
})

afterEach(async () => {
  await app?.close()
  app = undefined
  await latchkey.close()
})

const note = (...args: unknown[]) => void logged.push(args.map(String).join(' '))
const logger = { log() {}, error: note, warn: note, fatal: note }

type Setup = (app: common.INestApplication) => void

const create: Record<
  'Express' | 'Fastify',
  (module: Class, options: common.NestApplicationOptions) => Promise<common.INestApplication>
> = {
  Express: (module, options) => NestFactory.create(module, options),
  Fastify: (module, options) =>
    NestFactory.create(module, new FastifyAdapter({ forceCloseConnections: true }), options),
}

interface Serving {
  readonly platform: 'Express' | 'Fastify'
  readonly rawBody?: boolean
  readonly more?: common.ModuleMetadata
  readonly setup?: Setup
}

async function serve(controller: Class, { platform, rawBody = true, more = {}, setup = () => {} }: Serving) {
  const nest: NestLibrary = {
    common,
    create: module => create[platform](module, { rawBody, logger, abortOnError: false, forceCloseConnections: true }),
  }
  const made = await nest.create(moduleOf(nest, [controller], more))
  setup(made)
  app = await listening(made)
}

function post(headers: Record<string, string> = {}, body = '{"sku":1}'): Promise<Response> {
  const all = { 'content-type': 'application/json', 'idempotency-key': 'k', ...headers }
  return fetch(`${app?.url}/orders`, { method: 'POST', headers: all, body, redirect: 'manual' })
}

/** A controller with one POST /orders. Decorators are given lowest first. */
function controllerOf(
  handle: (...args: never[]) => unknown,
  decorators: readonly MethodDecorator[],
  parameters: readonly ParameterDecorator[] = [],
): Class {
  class Orders {}
  Object.defineProperty(Orders.prototype, 'handle', { value: handle, writable: true, configurable: true })
  parameters.forEach((one, index) => one(Orders.prototype, 'handle', index))
  decorate(Orders, 'handle', [...decorators, common.Post('/orders')])
  common.Controller()(Orders)
  return Orders
}

const rerun = { onFailure: 'rerun' } as const
const isReplay = (response: Response) => response.headers.get('Idempotent-Replayed') === 'true'
const stateOfRow = async () =>
  (await store.read(latchkey.identify({ scope: 'acme', operation: 'orders.create', key: 'k' })))?.state

async function typeOf(problem: Response): Promise<unknown> {
  return ((await problem.json()) as { type: unknown }).type // every problem has one
}

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await holds()) return
    await new Promise(resolve => setTimeout(resolve, 25))
  }
  throw new Error(`never happened: ${what}`)
}

describe.each(['Express', 'Fastify'] as const)('Nest on %s', platform => {
  it('runs guards before the claim, and before every replay', async () => {
    let runs = 0
    const guard = {
      canActivate: (context: common.ExecutionContext) =>
        context.switchToHttp().getRequest().headers['x-user'] === 'ann',
    }
    const operation = latchkey.guarded('orders.create', rerun)
    await serve(
      controllerOf(() => ({ run: ++runs }), [Idempotent(operation), common.UseGuards(guard)]),
      { platform },
    )
    expect((await post()).status).toBe(403)
    expect([runs, await stateOfRow()]).toEqual([0, undefined])
    expect(await (await post({ 'x-user': 'ann' })).json()).toEqual({ run: 1 })
    expect((await post()).status).toBe(403)
    const again = await post({ 'x-user': 'ann' })
    expect([isReplay(again), again.status, await again.json(), runs]).toEqual([true, 201, { run: 1 }, 1])
  })

  it('stores what an exception filter rendered', async () => {
    let runs = 0
    class SoldOut extends Error {}
    class SoldOutFilter {
      catch(_error: unknown, host: common.ArgumentsHost) {
        host.switchToHttp().getResponse().status(409).header('X-Filter', 'yes').send({ sold: 'out' })
      }
    }
    common.Catch(SoldOut)(SoldOutFilter)
    const handle = () => {
      runs += 1
      throw new SoldOut()
    }
    const decorators = [Idempotent(latchkey.guarded('orders.create', rerun)), common.UseFilters(SoldOutFilter)]
    await serve(controllerOf(handle, decorators), { platform })
    const [first, again] = [await post(), await post()]
    expect([first.status, await first.json(), isReplay(first)]).toEqual([409, { sold: 'out' }, false])
    expect([again.status, await again.json(), isReplay(again), again.headers.get('X-Filter')]).toEqual([
      409,
      { sold: 'out' },
      true,
      'yes',
    ])
    expect(runs).toBe(1)
  })

  it('hands the execution over as a parameter, and by the request', async () => {
    const operation = latchkey.guarded('orders.create', { ...rerun, onMissingKey: 'run-unprotected' })
    const handle = (execution: Execution, request: object) => ({
      key: execution.key,
      byRequest: executionOf(request) === undefined ? 'undefined' : executionOf(request) === execution,
    })
    await serve(controllerOf(handle, [Idempotent(operation)], [LatchkeyExecution(), common.Req()]), { platform })
    expect(await (await post()).json()).toEqual({ key: 'k', byRequest: true })
    const unprotected = await fetch(`${app?.url}/orders`, { method: 'POST' })
    expect(await unprotected.json()).toEqual({ key: '', byRequest: 'undefined' })
  })

  it('stores headers of @Header() with the answer, and keeps them out of refusals', async () => {
    const decorators = [
      Idempotent(latchkey.guarded('orders.create', rerun)),
      common.Header('Content-Type', 'text/csv'),
      common.Header('Cache-Control', 'private, max-age=60'),
    ]
    await serve(
      controllerOf(() => 'a,b', decorators),
      { platform },
    )
    const [first, again, misuse] = [await post(), await post(), await post({}, '{"sku":2}')]
    for (const one of [first, again]) {
      expect([one.headers.get('content-type')?.split(';')[0], one.headers.get('cache-control')]).toEqual([
        'text/csv',
        'private, max-age=60',
      ])
      expect(await one.text()).toBe('a,b')
    }
    expect(isReplay(again)).toBe(true)
    expect([misuse.status, misuse.headers.get('content-type')]).toEqual([422, 'application/problem+json'])
    expect(misuse.headers.get('cache-control')).not.toBe('private, max-age=60')
  })

  it('lets the interceptors around it see the end of a replay, and answers once', async () => {
    let [begun, ended] = [0, 0]
    const around: common.NestInterceptor = {
      intercept(_context, next) {
        begun += 1
        return next.handle().pipe(
          map((data: unknown) => ({ data })),
          finalize(() => (ended += 1)),
        )
      },
    }
    await serve(
      controllerOf(() => 'made', [Idempotent(latchkey.guarded('orders.create', rerun))]),
      {
        platform,
        setup: one => void one.useGlobalInterceptors(around),
      },
    )
    const [first, again, misuse] = [await post(), await post(), await post({}, '{"sku":2}')]
    expect([await first.json(), await again.json(), isReplay(again)]).toEqual([
      { data: 'made' },
      { data: 'made' },
      true,
    ])
    expect(misuse.status).toBe(422)
    expect([begun, ended, logged]).toEqual([3, 3, []])
  })

  it('answers once when an interceptor around a replay fails', async () => {
    const around: common.NestInterceptor = {
      intercept: (_context, next) => next.handle().pipe(map((made: { id: number }) => ({ id: made.id }))),
    }
    await serve(
      controllerOf(() => ({ id: 7 }), [Idempotent(latchkey.guarded('orders.create', rerun))]),
      {
        platform,
        setup: one => void one.useGlobalInterceptors(around),
      },
    )
    const [first, again] = [await post(), await post()]
    expect([await first.json(), await again.json(), again.status, isReplay(again)]).toEqual([
      { id: 7 },
      { id: 7 },
      201,
      true,
    ])
  })

  it('replays a @Redirect()', async () => {
    const decorators = [Idempotent(latchkey.guarded('orders.create', rerun)), common.Redirect('/orders/7', 303)]
    await serve(
      controllerOf(() => undefined, decorators),
      { platform },
    )
    const [first, again] = [await post(), await post()]
    for (const one of [first, again]) expect([one.status, one.headers.get('location')]).toEqual([303, '/orders/7'])
    expect([isReplay(again), logged]).toEqual([true, []])
  })

  it('holds the claim while a handler runs that a timeout around it gave up on', async () => {
    let runs = 0
    let finish = () => {}
    const handle = () => {
      runs += 1
      return new Promise<string>(resolve => (finish = () => resolve('late')))
    }
    const around: common.NestInterceptor = { intercept: (_context, next) => next.handle().pipe(timeout(50)) }
    await serve(controllerOf(handle, [Idempotent(latchkey.guarded('orders.create', { onFailure: 'hold' }))]), {
      platform,
      setup: one => void one.useGlobalInterceptors(around),
    })
    // The client is not kept waiting for the handler.
    expect((await post()).status).toBe(500)
    const busy = await post()
    expect([busy.status, await typeOf(busy)]).toEqual([409, 'urn:latchkey:problem:in-progress'])
    finish()
    await until('the row is held', async () => (await stateOfRow()) === 'unknown')
    expect([await typeOf(await post()), runs]).toEqual(['urn:latchkey:problem:outcome-unknown', 1])
  })

  it('does not keep an answer that a handler began before it threw', async () => {
    let runs = 0
    const handle = (response: { raw?: NodeJS.WritableStream; hijack?(): void } & NodeJS.WritableStream) => {
      runs += 1
      response.hijack?.()
      ;(response.raw ?? response).write('half')
      throw new Error('the other half is missing')
    }
    await serve(controllerOf(handle, [Idempotent(latchkey.guarded('orders.create', rerun))], [common.Res()]), {
      platform,
    })
    expect([(await post()).status, (await post()).status, runs]).toEqual([500, 500, 2])
  })

  it('takes the answer of an atomic handler back that throws after it', async () => {
    const database = await adapterStores.transactional()
    const atomic = createLatchkey<unknown, unknown>({ store: database.store, scope: () => 'acme' })
    let runs = 0
    const handle = async ({ tx }: AtomicExecution<unknown>, response: { send(body: string): void }) => {
      runs += 1
      await database.insert(tx, `order-${runs}`)
      response.send('made')
      await new Promise(resolve => setTimeout(resolve, 20))
      if (runs === 1) throw new common.ConflictException('not made')
    }
    const parameters = [LatchkeyExecution(), common.Res()]
    await serve(controllerOf(handle, [Idempotent(atomic.atomic('orders.create'))], parameters), { platform })
    expect([(await post()).status, await database.values()]).toEqual([500, []])
    const again = await post()
    expect([again.status, await again.text(), await database.values(), runs]).toEqual([201, 'made', ['order-2'], 2])
    await database.close()
  })

  it('compares parsed bodies without rawBody, and the log has the cure where that is not enough', async () => {
    await serve(
      controllerOf(() => 'made', [Idempotent(latchkey.guarded('orders.create', rerun))]),
      { platform, rawBody: false },
    )
    expect([
      (await post()).status,
      isReplay(await post({}, '{ "sku": 1 }')),
      (await post({}, '{"sku":2}')).status,
    ]).toEqual([201, true, 422])
    const lost = await post({ 'idempotency-key': 'k2' }, '{"amount":9007199254740993}')
    expect([await lost.text(), lost.status]).toEqual([expect.not.stringContaining('rawBody'), 415])
    expect(reports).toEqual([expect.stringContaining('rawBody: true')])
    const deep = await post({ 'idempotency-key': 'k3' }, `{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}`)
    expect([deep.status, await deep.json()]).toEqual([413, expect.objectContaining({ levels_max: 256 })])
  })

  it('keeps two integers apart that a parser makes one', async () => {
    await serve(
      controllerOf(() => 'made', [Idempotent(latchkey.guarded('orders.create', rerun))]),
      { platform },
    )
    expect((await post({}, '{"amount":9007199254740993}')).status).toBe(201)
    expect((await post({}, '{"amount":9007199254740992}')).status).toBe(422)
  })

  it('closes Latchkey with the application', async () => {
    const imports = [LatchkeyModule.forRoot({ latchkey })]
    await serve(
      controllerOf(() => 'made', [Idempotent(latchkey.guarded('orders.create', rerun))]),
      { platform, more: { imports } },
    )
    expect((await post()).status).toBe(201)
    await app?.close()
    const operation = latchkey.guarded('orders.create', rerun)
    await expect(operation.run({ scope: 'acme', key: 'k2', input: 1 }, () => 'ran')).rejects.toThrow()
  })
})

it('leaves headers of Fastify hooks to the hooks, on a replay too', async () => {
  await serve(
    controllerOf(() => 'made', [Idempotent(latchkey.guarded('orders.create', rerun))]),
    {
      platform: 'Fastify',
      setup: one =>
        one
          .getHttpAdapter()
          .getInstance()
          .addHook('onRequest', async (_request: unknown, reply: { header(name: string, value: string): void }) => {
            reply.header('X-Outer', 'always')
          }),
    },
  )
  const [first, again, misuse] = [await post(), await post(), await post({}, '{"sku":2}')]
  for (const one of [first, again, misuse]) expect(one.headers.get('X-Outer')).toBe('always')
  const id = latchkey.identify({ scope: 'acme', operation: 'orders.create', key: 'k' })
  const names = (await store.read(id))?.outcome?.headers.map(([name]) => name.toLowerCase())
  expect([isReplay(again), names?.includes('x-outer')]).toEqual([true, false])
})

it('lets Express middleware that sends later finish with our answer', async () => {
  // As a session middleware does: it saves first, and sets its cookie when the head is written.
  const late = (_req: unknown, res: ServerResponse, next: () => void) => {
    const end = res.end.bind(res)
    res.end = (chunk: unknown) => {
      setTimeout(() => {
        res.setHeader('X-Saved', 'yes')
        end(chunk)
      }, 30)
      return res
    }
    next()
  }
  const decorators = [Idempotent(latchkey.guarded('orders.create', rerun)), common.HttpCode(204)]
  await serve(
    controllerOf(() => undefined, decorators),
    { platform: 'Express', setup: one => void one.use(late) },
  )
  const [first, again, misuse] = [await post(), await post(), await post({}, '{"sku":2}')]
  expect([first.status, again.status, isReplay(again), misuse.status]).toEqual([204, 204, true, 422])
  for (const one of [first, again, misuse]) expect(one.headers.get('X-Saved')).toBe('yes')
  expect(misuse.headers.get('content-type')).toBe('application/problem+json')
})

describe('the decorator', () => {
  it('does nothing outside of HTTP', async () => {
    const controller = controllerOf(() => 'made', [Idempotent(latchkey.guarded('orders.create', rerun))])
    const [interceptor] = interceptorsOf(controller.prototype['handle' as keyof typeof controller.prototype])
    const handled = { subscribe: () => ({ unsubscribe() {} }) }
    const context = { getType: () => 'rpc' } as NestContext // all that is looked at
    const given = await (interceptor as { intercept(...args: unknown[]): unknown }).intercept(context, {
      handle: () => handled,
    })
    expect(given).toBe(handled)
  })

  it('refuses a second operation on one method', () => {
    const decorators = ['a', 'b'].map(name => Idempotent(latchkey.guarded(name, rerun)))
    expect(() => controllerOf(() => 'made', decorators)).toThrow('one operation')
  })
})

import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { describe, expect, it } from 'vitest'
import { adapterStores } from '../../../test/http/stores.ts'
import { jsonOf, matches, responseOf } from '../../../test/http/fetch-replies.ts'
import { type AdapterHarness, AppError, type AppSpec, type HandlerReply, runAdapterCases } from '@latchkey/conformance'
import { createLatchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { idempotent, statusOf } from './index.ts'

/** What a server of the fetch kind does with its handlers' errors. */
function rendered(error: unknown): Response {
  if (error instanceof AppError) return new Response(error.message, { status: error.renderAs })
  const status = error instanceof Error && 'status' in error ? Number(error.status) : 500
  return new Response(error instanceof Error ? error.message : 'failed', { status })
}

function reply(one: HandlerReply): Response {
  if (one.kind === 'throw') throw Object.assign(new Error(one.message), { status: one.status })
  if (one.kind === 'crash') throw one.error
  const response = responseOf(one)
  if (response === undefined) throw new Error(`no ${one.kind} here`)
  return response
}

function handlerOf({ routes, phased, status, outerHeaders }: AppSpec): (request: Request) => Promise<Response> {
  const served = routes.map(route => ({
    route,
    handle: idempotent(
      route.operation,
      async (request: Request, execution) => reply(await route.run({ execution, body: await jsonOf(request) })),
      { onError: rendered },
    ),
  }))
  const inPhases = phased.map(route => ({
    route,
    handle: idempotent(route.operation, { input: async (request: Request) => route.input(await jsonOf(request)) }),
  }))
  const told =
    status === undefined
      ? []
      : [{ route: { method: 'GET', path: status.path } as const, handle: statusOf(status.latchkey) }]
  return async request => {
    const found = [...served, ...inPhases, ...told].find(({ route }) => matches(route, request))
    if (found === undefined) return new Response('no route', { status: 404 })
    const response = await found.handle(request).catch(rendered)
    for (const [name, value] of outerHeaders) response.headers.set(name, value)
    return response
  }
}

const harness: AdapterHarness = {
  name: 'fetch',
  provides: new Set([
    'body',
    'stream',
    'broken-stream',
    'source',
    'transactional',
    'phased',
    'deferred',
    'error-handler',
  ]),
  ...adapterStores,
  // The context of this adapter is the request.
  headerOf: (context, name) => (context as Request).headers.get(name) ?? undefined,
  bodyOf: context => (context as Request).clone().json(),
  start: app =>
    new Promise(resolve => {
      const server = serve({ fetch: handlerOf(app), port: 0, hostname: '127.0.0.1' }, (info: AddressInfo) =>
        resolve({
          url: `http://127.0.0.1:${info.port}`,
          close: () => new Promise(closed => server.close(() => closed())),
        }),
      )
    }),
}

describe('fetch adapter', () => {
  runAdapterCases(harness, it)

  it('passes what the server hands on, keeps the request readable, and hides its abort', async () => {
    const latchkey = createLatchkey<unknown, Request>({ store: memoryStore(), scope: () => 'acme' })
    const controller = new AbortController()
    const handle = idempotent(
      latchkey.guarded('orders.create', { onFailure: 'hold' }),
      async (request: Request, execution, { id }: { id: string }) => {
        controller.abort()
        await new Promise(resolve => setTimeout(resolve, 20))
        return Response.json({ id, key: execution.key, aborted: request.signal.aborted, body: await request.json() })
      },
    )
    const request = () =>
      new Request('http://shop.test/orders/7?x=1', {
        method: 'POST',
        body: '{"sku":1}',
        headers: { 'Idempotency-Key': '"k"', 'Content-Type': 'application/json' },
        signal: controller.signal,
      })
    const first = await handle(request(), { id: '7' })
    expect(await first.json()).toEqual({ id: '7', key: 'k', aborted: false, body: { sku: 1 } })
    await latchkey.close()
  })

  it('sends what it stores for an error that nothing renders, and every retry gets the same', async () => {
    const latchkey = createLatchkey<unknown, Request>({ store: memoryStore(), scope: () => 'acme' })
    const handle = idempotent(latchkey.guarded('orders.create', { onFailure: 'store' }), (_: Request): Response => {
      throw new TypeError('card 4242 of Ann')
    })
    const ask = () =>
      handle(new Request('http://shop.test/orders', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }))
    const [first, again] = [await ask(), await ask()]
    expect([first.status, await first.text()]).toEqual([500, '{"error":"TypeError"}'])
    expect([again.status, await again.text()]).toEqual([500, '{"error":"TypeError"}'])
    expect([first, again].map(one => one.headers.get('Idempotent-Replayed'))).toEqual([null, 'true'])
    await latchkey.close()
  })

  it('throws the handler error on where nothing renders it', async () => {
    const latchkey = createLatchkey<unknown, Request>({ store: memoryStore(), scope: () => 'acme' })
    const handle = idempotent(latchkey.guarded('orders.create', { onFailure: 'rerun' }), (_: Request): Response => {
      throw new TypeError('oops')
    })
    const request = new Request('http://shop.test/orders', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
    await expect(handle(request)).rejects.toThrow('oops')
    await latchkey.close()
  })
})

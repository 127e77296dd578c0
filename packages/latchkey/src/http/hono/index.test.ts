import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { compress } from 'hono/compress'
import { HTTPException } from 'hono/http-exception'
import { streamSSE } from 'hono/streaming'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { reportsInto } from '../../../test/http/parsed-bodies.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import { jsonOf, responseOf } from '../../../test/http/fetch-replies.ts'
import { type AdapterHarness, AppError, type AppSpec, type HandlerReply, runAdapterCases } from '@latchkey/conformance'
import { singleTenant } from '../../engine/request.ts'
import { createLatchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { executionOf, idempotent, statusOf } from './index.ts'

function reply(c: Context, one: HandlerReply): Response {
  if (one.kind === 'throw') throw new HTTPException(one.status as ContentfulStatusCode, { message: one.message }) // the cases' own statuses
  if (one.kind === 'crash') throw one.error
  if (one.kind === 'redirect') return c.redirect(one.location, one.status)
  if (one.kind === 'answer' && one.status === 201) {
    // Hono's own way: headers on the context, then a body.
    for (const [name, value] of one.headers) c.header(name, value, { append: true })
    return c.body(one.asText === true ? Buffer.from(one.body).toString() : new Uint8Array(one.body), 201)
  }
  const response = responseOf(one)
  if (response === undefined) throw new Error(`no ${one.kind} here`)
  return response
}

/** As the default does, without its log, and for the errors of the app. */
function onError(error: Error, c: Context): Response | Promise<Response> {
  if (error instanceof AppError) return c.text(error.message, error.renderAs as ContentfulStatusCode) // the cases' own statuses
  return error instanceof HTTPException ? error.getResponse() : c.text('Internal Server Error', 500)
}

type Form = (app: Hono, spec: AppSpec['routes'][number]) => void

const asHandler: Form = (app, { method, path, operation, run }) =>
  void app.on(
    method,
    path,
    idempotent(
      operation,
      async (c: Context, execution) => reply(c, await run({ execution, body: await jsonOf(c.req) })),
      { onError },
    ),
  )

const asMiddleware: Form = (app, { method, path, operation, run }) =>
  void app.on(method, path, idempotent(operation), async c => {
    const execution = executionOf(c)
    return reply(c, await run({ execution, body: await jsonOf(c.req) }))
  })

function harness(name: string, form: Form): AdapterHarness {
  return {
    name,
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
    // The context of this adapter is Hono's.
    headerOf: (context, field) => (context as Context).req.header(field),
    bodyOf: context => (context as Context).req.json(),
    start({ routes, phased, status, outerHeaders }) {
      const app = new Hono()
      app.onError(onError)
      app.use(async (c, next) => {
        for (const [field, value] of outerHeaders) c.header(field, value)
        await next()
      })
      for (const route of routes) form(app, route)
      for (const { method, path, operation, input } of phased) {
        app.on(method, path, idempotent(operation, { input: async (c: Context) => input(await jsonOf(c.req)) }))
      }
      if (status !== undefined) app.get(status.path, statusOf(status.latchkey))
      return listen(app)
    },
  }
}

function listen(app: Hono): Promise<{ url: string; close(): Promise<void> }> {
  return new Promise(resolve => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (info: AddressInfo) =>
      resolve({
        url: `http://127.0.0.1:${info.port}`,
        close: () => new Promise(closed => server.close(() => closed())),
      }),
    )
  })
}

describe('Hono adapter as a handler', () => runAdapterCases(harness('Hono handler', asHandler), it))
describe('Hono adapter as middleware', () => runAdapterCases(harness('Hono middleware', asMiddleware), it))

describe('Hono adapter', () => {
  const covered = { method: 'POST', headers: { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' } }
  const reports: string[] = []
  const telemetry = reportsInto(reports)
  const guarded = () =>
    createLatchkey<unknown, Context>({ store: memoryStore(), scope: () => 'acme', telemetry }).guarded(
      'orders.create',
      {
        onFailure: 'rerun',
      },
    )

  it("sends the events of Hono's own helper at once, and shows it that the client has left", async () => {
    const heard: string[] = []
    const app = new Hono()
    app.post(
      '/orders',
      idempotent(guarded(), (c: Context) => {
        c.req.raw.signal.addEventListener('abort', () => heard.push('signal'))
        return streamSSE(c, async stream => {
          stream.onAbort(() => void heard.push('stream'))
          await stream.writeSSE({ data: 'one' })
          while (!stream.aborted) await stream.sleep(5)
          heard.push('stopped')
        })
      }),
    )
    const { url, close } = await listen(app)
    const controller = new AbortController()
    const response = await fetch(`${url}/orders`, { ...covered, body: '{}', signal: controller.signal })
    const { value } = (await response.body?.getReader().read()) ?? {}
    expect(new TextDecoder().decode(value)).toBe('data: one\n\n')
    controller.abort()
    await expect.poll(() => heard.toSorted()).toEqual(['signal', 'stopped', 'stream'])
    expect((await fetch(`${url}/orders`, { ...covered, body: '{}' })).status).toBe(410)
    await close()
  })

  it('reads a body that a validator has read, and leaves it to the handler', async () => {
    const app = new Hono()
    app.use('/orders', async (c, next) => {
      await c.req.json()
      await next()
    })
    app.post(
      '/orders',
      idempotent(guarded(), async (c: Context) => c.json(await c.req.json())),
    )
    const first = await app.request('/orders', { ...covered, body: '{"sku": 1}' })
    expect(await first.json()).toEqual({ sku: 1 })
    expect((await app.request('/orders', { ...covered, body: '{"sku":2}' })).status).toBe(422)
  })

  it('refuses a multipart body that was parsed before, and the log has the cure', async () => {
    const app = new Hono()
    app.use('/orders', async (c, next) => {
      await c.req.formData()
      await next()
    })
    app.post(
      '/orders',
      idempotent(guarded(), (c: Context) => c.text('never')),
    )
    const form = new FormData()
    form.set('file', new Blob(['x']), 'x.txt')
    const response = await app.request('/orders', { method: 'POST', headers: { 'Idempotency-Key': 'k' }, body: form })
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({
      type: 'urn:latchkey:problem:body-unreadable',
      detail: expect.not.stringContaining('Mount Latchkey'),
    })
    expect(reports).toContainEqual(expect.stringContaining('Mount Latchkey before'))
  })

  it('renders through the onError it is given, stores that, and shows the error to outer middleware', async () => {
    const app = new Hono()
    const errors: unknown[] = []
    app.use(async (c, next) => {
      await next()
      errors.push(c.error?.message)
    })
    let runs = 0
    const onError = (error: Error, c: Context) => c.json({ problem: error.message }, 422)
    app.post(
      '/orders',
      idempotent(
        guarded(),
        (): Response => {
          runs += 1
          throw new Error('bad sku')
        },
        { onError },
      ),
    )
    expect((await app.request('/orders', covered)).status).toBe(422)
    const again = await app.request('/orders', covered)
    expect([again.headers.get('Idempotent-Replayed'), await again.json(), runs]).toEqual([
      'true',
      { problem: 'bad sku' },
      1,
    ])
    expect(errors).toEqual(['bad sku', undefined])
  })

  it.each(['hold', 'store'] as const)(
    'refuses a handler under %s that would not see what app.onError renders, and names both cures',
    onFailure => {
      const latchkey = createLatchkey<unknown, Context>({ store: memoryStore(), scope: singleTenant })
      const operation = latchkey.guarded('orders.create', { onFailure })
      const handler = (c: Context) => c.body(null, 204)
      for (const cure of ['idempotent(operation, handler, { onError })', 'as middleware']) {
        expect(() => idempotent(operation, handler)).toThrow(cure)
      }
      idempotent(operation, handler, { onError })
      idempotent(operation)
    },
  )

  it('stores nothing of an error that it does not see rendered, and leaves it to app.onError', async () => {
    const app = new Hono().onError((_, c) => c.text('no such order', 404))
    let runs = 0
    app.post(
      '/orders',
      idempotent(guarded(), (): Response => {
        runs += 1
        throw new Error('a domain error')
      }),
    )
    for (const run of [1, 2]) {
      const response = await app.request('/orders', covered)
      expect([response.status, await response.text(), runs]).toEqual([404, 'no such order', run])
    }
  })

  it('sends what it stores for a throw that nothing can render', async () => {
    const app = new Hono()
    const latchkey = createLatchkey<unknown, Context>({ store: memoryStore(), scope: () => 'acme' })
    // Hono renders errors only.
    const notAnError = 'no error' as unknown as Error
    const thrower = (): Response => {
      throw notAnError
    }
    app.post('/orders', idempotent(latchkey.guarded('orders.create', { onFailure: 'store' }), thrower, { onError }))
    const served = await listen(app)
    const first = await fetch(`${served.url}/orders`, covered)
    const again = await fetch(`${served.url}/orders`, covered)
    await served.close()
    expect([again.status, await again.text()]).toEqual([first.status, await first.text()])
    expect([first.status, again.headers.get('Idempotent-Replayed')]).toEqual([500, 'true'])
  })

  it('takes a handler that returns nothing for one that threw, and keeps no empty 200 for it', async () => {
    const latchkey = createLatchkey<unknown, Context>({ store: memoryStore(), scope: singleTenant })
    const app = new Hono()
    app.onError((error, c) => c.text(error.message, 500))
    // What the types forbid, and JavaScript does not.
    const forgetful = (async () => undefined) as unknown as () => Promise<Response>
    app.post('/orders', idempotent(latchkey.guarded('orders.create', { onFailure: 'rerun' }), forgetful))
    const served = await listen(app)
    const response = await fetch(`${served.url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k' } })
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('no Response')])
    await served.close()
  })

  it('leaves nothing of a response that broke off in what onError renders instead', async () => {
    const app = new Hono()
    app.onError((_, c) => c.text('sorry', 502))
    const broken = new ReadableStream({ start: controller => controller.error(new Error('upstream went away')) })
    app.post(
      '/orders',
      idempotent(
        guarded(),
        (_: Context) => new Response(broken, { headers: { 'Content-Length': '999', ETag: '"half"' } }),
      ),
    )
    const response = await app.request('/orders', covered)
    expect([response.status, response.headers.get('ETag'), response.headers.get('Content-Length')]).toEqual([
      502,
      null,
      null,
    ])
    expect(await response.text()).toBe('sorry')
  })

  it('stores what it sees and lets compression outside it compress first answer and replay alike', async () => {
    const app = new Hono()
    app.use(compress({ threshold: 10 }))
    app.post(
      '/orders',
      idempotent(guarded(), (c: Context) => c.text('compress me, please. '.repeat(100))),
    )
    const running = await listen(app)
    try {
      for (const replayed of [null, 'true']) {
        const response = await fetch(`${running.url}/orders`, {
          ...covered,
          headers: { ...covered.headers, 'Accept-Encoding': 'gzip' },
        })
        expect([response.headers.get('Content-Encoding'), response.headers.get('Idempotent-Replayed')]).toEqual([
          'gzip',
          replayed,
        ])
        expect(await response.text()).toBe('compress me, please. '.repeat(100))
      }
    } finally {
      await running.close()
    }
  })

  it('lets the types of the app flow into the handler', () => {
    interface Env {
      Variables: { account: string }
    }
    const app = new Hono<Env>()
    const latchkey = createLatchkey({ store: memoryStore(), scope: (c: Context<Env>) => [c.get('account')] })
    const operation = latchkey.guarded('orders.create', { onFailure: 'rerun' })
    app.post(
      '/orders/:id',
      idempotent(operation, async (c, { key }) => {
        expectTypeOf(c.get('account')).toEqualTypeOf<string>()
        return c.json({ key }, 201)
      }),
    )
    app.use('/orders/*', idempotent(operation))
    const single = createLatchkey({ store: memoryStore(), scope: singleTenant }).guarded('orders.create', {
      onFailure: 'rerun',
    })
    app.post(
      '/single',
      idempotent(single, (c: Context, { attempt }) => c.json({ attempt })),
    )
  })
})

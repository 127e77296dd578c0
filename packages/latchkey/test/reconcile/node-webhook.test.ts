import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttp2Server, type Http2Server } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { createLatchkey, json, outcomeUnknown, singleTenant } from 'latchkey'
import { createReconciler, nodeWebhook, standardWebhooks } from 'latchkey/reconcile'
import { memoryStore } from 'latchkey/stores/memory'
import { recordingTelemetry } from '../engine/fixture.ts'
import { sendOverHttp2 } from '../http/http2-client.ts'
import { secret, signedWebhook } from './fixture.ts'

const servers: (Server | Http2Server)[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections()
    await new Promise(closed => server.close(closed))
  }
})

async function listening(listener: RequestListener): Promise<number> {
  return listen(createServer(listener))
}

async function listen(server: Server | Http2Server): Promise<number> {
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function newScene() {
  const telemetry = recordingTelemetry()
  const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant, telemetry })
  const pay = latchkey.guarded('payments.create', { onFailure: 'hold' })
  await pay.run({ scope: 'acme', key: 'k', input: 1 }, () => Promise.reject(outcomeUnknown())).catch(() => undefined)
  const id = latchkey.identify({ scope: 'acme', operation: 'payments.create', key: 'k' })
  const handler = createReconciler(latchkey).webhook<{ id: string }>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [secret] }),
    evidence: event => ({ id: event.id, verdict: { kind: 'happened', outcome: json(201, {}) } }),
  })
  return { handler, id, telemetry, stateOf: async () => (await latchkey.inspect({ id })).record?.state }
}

async function deliver(port: number, event: unknown): Promise<Response> {
  const signed = signedWebhook(event)
  const body = await signed.text()
  signed.headers.set('content-type', 'application/json')
  return fetch(`http://127.0.0.1:${port}/hooks`, { method: 'POST', headers: signed.headers, body })
}

type Mount = (hook: ReturnType<typeof nodeWebhook>) => RequestListener | Promise<RequestListener>

const mounts: [string, Mount][] = [
  ['node:http', hook => hook],
  ['Express', hook => express().post('/hooks', hook).use(express.json())],
  [
    'Express, behind a raw parser',
    hook =>
      express()
        .use(express.raw({ type: '*/*' }))
        .post('/hooks', hook),
  ],
  [
    'Koa',
    hook => {
      const app = new Koa()
      app.use(ctx => {
        ctx.respond = false
        hook(ctx.req, ctx.res)
      })
      const callback = app.callback()
      return (req, res) => void callback(req, res)
    },
  ],
  [
    'Fastify',
    async hook => {
      const app = Fastify()
      app.register(async hooks => {
        hooks.removeAllContentTypeParsers()
        hooks.addContentTypeParser('*', (_request, _payload, done) => done(null))
        hooks.post('/hooks', (request, reply) => {
          reply.hijack()
          hook(request.raw, reply.raw)
        })
      })
      await app.ready()
      return (req, res) => app.routing(req, res)
    },
  ],
]

type Hook = ReturnType<typeof nodeWebhook>

const http2Mounts: [string, (hook: Hook) => Http2Server | Promise<Http2Server>][] = [
  ['node:http2', hook => createHttp2Server(hook)],
  [
    'Koa',
    hook => {
      const app = new Koa()
      app.use(ctx => {
        ctx.respond = false
        hook(ctx.req, ctx.res)
      })
      const callback = app.callback()
      return createHttp2Server((req, res) => void callback(req, res))
    },
  ],
  [
    'Fastify',
    async hook => {
      const app = Fastify({ http2: true })
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('*', (_request, _payload, done) => done(null))
      app.post('/hooks', (request, reply) => {
        reply.hijack()
        hook(request.raw, reply.raw)
      })
      await app.ready()
      return app.server
    },
  ],
]

describe('a webhook on a Node server', () => {
  it.each(mounts)('settles and refuses on %s', async (_, mount) => {
    const { handler, id, stateOf } = await newScene()
    const port = await listening(await mount(nodeWebhook(handler)))
    const forged = await fetch(`http://127.0.0.1:${port}/hooks`, { method: 'POST', body: '{}' })
    expect([forged.status, await forged.json()]).toMatchObject([400, { reason: 'malformed' }])
    expect((await deliver(port, { id })).status).toBe(200)
    expect(await stateOf()).toBe('completed')
  })

  it('says what to do where a parser has eaten the bytes', async () => {
    const { handler, id, stateOf } = await newScene()
    const port = await listening(express().use(express.json()).post('/hooks', nodeWebhook(handler)))
    const response = await deliver(port, { id })
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringContaining('mount the handler before body parsers'),
    ])
    expect(await stateOf()).toBe('unknown')
  })

  it('answers 413 above a megabyte, before the rest has come', async () => {
    const { handler } = await newScene()
    const port = await listening(nodeWebhook(handler))
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    const told = new Promise<string>(resolve => socket.once('data', data => resolve(String(data))))
    socket.write('POST /hooks HTTP/1.1\r\nhost: shop\r\ncontent-length: 10000000\r\n\r\n')
    socket.write(Buffer.alloc(1_100_000))
    expect(await told).toMatch(/^HTTP\/1.1 413 /)
    socket.destroy()
  })

  it('outlives a sender that hangs up half-way', async () => {
    const { handler, id } = await newScene()
    const port = await listening(nodeWebhook(handler))
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('POST /hooks HTTP/1.1\r\nhost: shop\r\ncontent-length: 100\r\n\r\nhalf')
    await new Promise(resolve => socket.once('connect', resolve))
    socket.destroy()
    expect((await deliver(port, { id })).status).toBe(200)
  })

  it.each(http2Mounts)('settles and refuses over HTTP/2 on %s', async (_, serve) => {
    const { handler, id, stateOf } = await newScene()
    const port = await listen(await serve(nodeWebhook(handler)))
    const forged = await sendOverHttp2(port, { path: '/hooks', body: '{}' })
    expect([forged.status, JSON.parse(forged.body)]).toMatchObject([400, { reason: 'malformed' }])
    const signed = signedWebhook({ id })
    const headers = { 'content-type': 'application/json', ...Object.fromEntries(signed.headers) }
    expect((await sendOverHttp2(port, { path: '/hooks', headers, body: await signed.text() })).status).toBe(200)
    expect(await stateOf()).toBe('completed')
  })

  it('answers 413 above a megabyte over HTTP/2, and serves the next stream of the connection', async () => {
    const { handler } = await newScene()
    const port = await listen(createHttp2Server(nodeWebhook(handler)))
    const large = await sendOverHttp2(port, { path: '/hooks', body: Buffer.alloc(3_000_000) })
    expect([large.status, large.next]).toEqual([413, 405])
  })

  it.each([
    ['TRACE / HTTP/1.1', 405],
    ['OPTIONS * HTTP/1.1', 405],
    ['POST // HTTP/1.1', 400],
    ['POST http://shop.example/hooks HTTP/1.1', 400],
    ['POST ///a:b@/ HTTP/1.1', 400],
    ['POST http:// HTTP/1.1', 400],
  ])('answers %s with %i', async (line, status) => {
    const { handler } = await newScene()
    const port = await listening(nodeWebhook(handler))
    expect(await exchangeText(port, `${line}\r\nhost: shop\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)).toMatch(
      new RegExp(`^HTTP/1.1 ${status} `),
    )
  })

  it.each(['//', '//hooks', 'http://shop.example/hooks'])('takes a genuine webhook sent to %s', async target => {
    const { handler, id, stateOf } = await newScene()
    const port = await listening(nodeWebhook(handler))
    const signed = signedWebhook({ id })
    const fields = [...signed.headers].map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const body = await signed.text()
    const head = `POST ${target} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-length: ${body.length}\r\n`
    expect(await exchangeText(port, `${head}${fields}\r\n${body}`)).toMatch(/^HTTP\/1.1 200 /)
    expect(await stateOf()).toBe('completed')
  })

  it('answers 500 and counts it where the host itself fails', async () => {
    const { handler, id, telemetry } = await newScene()
    const hook = nodeWebhook(handler)
    const port = await listening((req, res) => {
      Object.defineProperty(req, 'headers', {
        get() {
          throw new Error('the host is broken')
        },
      })
      hook(req, res)
    })
    const response = await deliver(port, { id }).catch(() => undefined)
    expect([response?.status, await response?.json()]).toMatchObject([500, { title: 'Webhook failed' }])
    expect(telemetry.told).toContainEqual(['reconcile.failed', { detail: 'provider: host' }])
  })

  it('answers 500 where the handler rejects', async () => {
    const port = await listening(nodeWebhook(() => Promise.reject(new Error('a handler of our own'))))
    expect((await deliver(port, {})).status).toBe(500)
  })
})

function exchangeText(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  return new Promise((resolve, reject) => {
    let told = ''
    socket.on('data', data => (told += String(data)))
    socket.on('error', reject)
    socket.on('close', () => resolve(told))
    socket.write(text)
  })
}

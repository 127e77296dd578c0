import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { type AddressInfo, connect, type Server } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express, { type Request as ExpressRequest } from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa, { type Context } from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import * as onExpress from 'latchkey/http/express'
import * as onFastify from 'latchkey/http/fastify'
import * as onFetch from 'latchkey/http/fetch'
import * as onHono from 'latchkey/http/hono'
import * as onKoa from 'latchkey/http/koa'
import { memoryStore } from 'latchkey/stores/memory'
import { sendOverHttp2 } from './http2-client.ts'
import { readAll } from './node-app.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise<unknown>(resolve => server.close(resolve))
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port // it listens on TCP
}

function operation() {
  const latchkey = createLatchkey<unknown, unknown>({ store: memoryStore(), scope: () => 'acme' })
  return latchkey.guarded('orders.create', { onFailure: 'rerun', bodyBytesMax: 1_000 })
}

let runs = 0
const made = () => `made ${++runs}`

function honoApp(): Hono {
  const app = new Hono()
  return app.post(
    '/orders',
    onHono.idempotent(operation(), () => new Response(made(), { status: 201 })),
  )
}

function koaApp(): Koa {
  const app = new Koa()
  app.use(onKoa.captureBody()).use(async (ctx, next) => {
    await readAll(ctx.req)
    await next()
  })
  app.use(
    onKoa.idempotent(operation(), (ctx: Context) => {
      ctx.status = 201
      ctx.body = made()
    }),
  )
  return app
}

/** With a listener whose promise nothing awaits. */
function http2(listener: (req: Http2ServerRequest, res: Http2ServerResponse) => Promise<void>): Server {
  return createHttp2Server((req, res) => void listener(req, res))
}

const overHttp2: Record<string, () => Server | Promise<Server>> = {
  Hono: () => http2(getRequestListener(honoApp().fetch)),
  fetch: () => http2(getRequestListener(onFetch.idempotent(operation(), () => new Response(made(), { status: 201 })))),
  Koa: () => http2(koaApp().callback()),
  async Fastify() {
    const app = Fastify({ http2: true })
    await app.register(onFastify.latchkeyFastify)
    app.post(
      '/orders',
      onFastify.idempotent(operation(), async (_request, reply) => {
        reply.code(201)
        return made()
      }),
    )
    await app.ready()
    return app.server
  },
}

const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }

describe.each(Object.entries(overHttp2))('%s over HTTP/2', (_, serve) => {
  it('runs a request once, replays it, and tells another one under its key apart', async () => {
    const port = await listen(await serve())
    const ask = (body: string) => sendOverHttp2(port, { path: '/orders', headers, body })
    const first = await ask('{"sku":1}')
    expect(first.status).toBe(201)
    const again = await ask('{"sku":1}')
    expect([again.status, again.body, again.headers['idempotent-replayed']]).toEqual([201, first.body, 'true'])
    expect((await ask('{"sku":2}')).status).toBe(422)
  })

  it.each([true, false])('refuses a body over its limit, and serves the next stream (length said: %s)', async said => {
    const port = await listen(await serve())
    const body = JSON.stringify('x'.repeat(200_000))
    const length = said ? { 'content-length': String(body.length) } : {}
    const refused = await sendOverHttp2(port, { path: '/orders', headers: { ...headers, ...length }, body })
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([413, { bytes_max: 1_000 }])
    expect(refused.next).toBeGreaterThanOrEqual(200)
  })
})

const overHttp1: Record<string, () => RequestListener | Promise<RequestListener>> = {
  Hono() {
    const listener = getRequestListener(honoApp().fetch)
    return (req, res) => void listener(req, res)
  },
  Express() {
    const app = express().use(onExpress.captureBody(), express.json())
    return app.post(
      '/orders',
      onExpress.idempotent(operation(), (_req: ExpressRequest, res) => void res.status(201).send(made())),
    )
  },
  Koa() {
    const callback = koaApp().callback()
    return (req, res) => void callback(req, res)
  },
}

describe.each(Object.entries(overHttp1))('%s', (name, serve) => {
  it('takes the absolute form of a target for the same request', async () => {
    const port = await listen(createServer(await serve()))
    const usual = await send(port, 'POST /orders?a=1 HTTP/1.1')
    const absolute = await send(port, 'POST http://shop/orders?a=1 HTTP/1.1')
    expect([statusOf(usual), statusOf(absolute)]).toEqual([201, 201])
    expect(absolute.toLowerCase()).toContain('idempotent-replayed: true')
  })

  it.each(['OPTIONS * HTTP/1.1', 'TRACE / HTTP/1.1', 'POST // HTTP/1.1'])('answers %s', async line => {
    const port = await listen(createServer(await serve()))
    const status = statusOf(await send(port, line))
    // Koa's app here has no router, and serves every path.
    expect(status).toBeGreaterThanOrEqual(200)
    expect(status).toBeLessThan(name === 'Koa' ? 300 : 500)
  })
})

function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
}

function send(port: number, line: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const body = '{"sku":1}'
  const fields = { host: 'shop', connection: 'close', 'content-length': body.length, ...headers }
  return new Promise((resolve, reject) => {
    let answer = ''
    socket.on('data', data => (answer += String(data)))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
    const head = Object.entries(fields).map(([field, value]) => `${field}: ${value}\r\n`)
    socket.write(`${line}\r\n${head.join('')}\r\n${body}`)
  })
}

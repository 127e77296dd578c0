/** An application whose idempotent handler never reads its body, on the adapter given as argument. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express, { type Request as ExpressRequest } from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { createLatchkey } from 'latchkey'
import * as onExpress from 'latchkey/http/express'
import * as onFastify from 'latchkey/http/fastify'
import * as onFetch from 'latchkey/http/fetch'
import * as onHono from 'latchkey/http/hono'
import * as onKoa from 'latchkey/http/koa'
import { memoryStore } from 'latchkey/stores/memory'

const latchkey = createLatchkey<unknown, unknown>({ store: memoryStore(), scope: () => 'acme' })
const operation = latchkey.guarded('orders.create', { onFailure: 'rerun' })

/** `unread`: no parser touches the body. */
const [, , adapter = '', unread] = process.argv

function served(handle: Parameters<typeof getRequestListener>[0]): RequestListener {
  const listener = getRequestListener(handle)
  return (req, res) => void listener(req, res)
}

/** A parser that does not retain the body, like one that writes uploads to disk. */
function passBy(req: NodeJS.ReadableStream): Promise<void> {
  if (unread === 'unread') return Promise.resolve()
  return new Promise((resolve, reject) => {
    req.on('error', reject)
    req.on('end', resolve)
    req.resume()
  })
}

const apps: Record<string, () => RequestListener | Promise<RequestListener>> = {
  hono() {
    const app = new Hono()
    app.post(
      '/orders',
      onHono.idempotent(operation, () => new Response('made')),
    )
    return served(app.fetch)
  },
  fetch: () => served(onFetch.idempotent(operation, () => new Response('made'))),
  express() {
    const app = express()
    app.use(onExpress.captureBody(), async (req, _res, next) => {
      await passBy(req)
      next()
    })
    app.post(
      '/orders',
      onExpress.idempotent(operation, (_req: ExpressRequest, res) => void res.end('made')),
    )
    return app
  },
  koa() {
    const app = new Koa()
    app.use(onKoa.captureBody()).use(async (ctx, next) => {
      await passBy(ctx.req)
      await next()
    })
    app.use(onKoa.idempotent(operation, ctx => void ctx.res.end('made')))
    const callback = app.callback()
    return (req, res) => void callback(req, res)
  },
  async fastify() {
    const app = Fastify()
    await app.register(onFastify.latchkeyFastify)
    app.addContentTypeParser('application/octet-stream', (_: unknown, payload: NodeJS.ReadableStream) =>
      passBy(payload),
    )
    app.post(
      '/orders',
      onFastify.idempotent(operation, async () => 'made'),
    )
    await app.ready()
    return (req, res) => app.routing(req, res)
  },
}

const listener = await apps[adapter]?.()
if (listener === undefined) throw new Error(`no adapter ${adapter}`)
const server = createServer((req, res) => {
  if (req.method === 'GET') return void res.end(JSON.stringify({ maxRssKiB: process.resourceUsage().maxRSS }))
  return listener(req, res)
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port })) // a TCP server

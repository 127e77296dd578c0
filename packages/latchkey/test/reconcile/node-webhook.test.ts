import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { createLatchkey, json, outcomeUnknown, singleTenant } from 'latchkey'
import { createReconciler, nodeWebhook, standardWebhooks } from 'latchkey/reconcile'
import { memoryStore } from 'latchkey/stores/memory'
import { secret, signedWebhook } from './stage.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise(closed => server.close(closed))
  }
})

async function listening(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function newScene() {
  const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })
  const pay = latchkey.guarded('payments.create', { onFailure: 'hold' })
  await pay.run({ scope: 'acme', key: 'k', input: 1 }, () => Promise.reject(outcomeUnknown())).catch(() => undefined)
  const id = latchkey.identify({ scope: 'acme', operation: 'payments.create', key: 'k' })
  const handler = createReconciler(latchkey).webhook<{ id: string }>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [secret] }),
    evidence: event => ({ id: event.id, verdict: { kind: 'happened', outcome: json(201, {}) } }),
  })
  return { handler, id, stateOf: async () => (await latchkey.inspect({ id })).record?.state }
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
      expect.stringContaining('mount it before body parsers'),
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
})

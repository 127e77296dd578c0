import { PassThrough, Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLatchkey } from '../../engine/latchkey.ts'
import type { Store } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { idempotent, latchkeyFastify } from './index.ts'

let store: Store
let app: FastifyInstance
let url: string

beforeEach(async () => {
  store = memoryStore()
  app = fastify({ forceCloseConnections: true })
  await app.register(latchkeyFastify)
})

afterEach(() => app.close())

const listen = async () => void (url = await app.listen({ host: '127.0.0.1', port: 0 }))
const orders = () =>
  createLatchkey<unknown, FastifyRequest>({ store, scope: () => 'acme' }).guarded('orders.create', {
    onFailure: 'rerun',
  })

function post(
  path: string,
  { body = {}, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<Response> {
  const all = { 'idempotency-key': 'k', 'content-type': 'application/json', ...headers }
  return fetch(url + path, { method: 'POST', headers: all, body: JSON.stringify(body) })
}

describe('the request body', () => {
  it('is compared by its bytes, also when hooks before the parser take their time', async () => {
    app.addHook('onRequest', () => new Promise<void>(resolve => setTimeout(resolve, 30)))
    app.post(
      '/orders',
      idempotent(orders(), async request => request.body),
    )
    await listen()
    expect((await post('/orders', { body: { sku: 1 } })).status).toBe(200)
    expect((await post('/orders', { body: { sku: 2 } })).status).toBe(422)
    expect((await post('/orders', { body: { sku: 1 } })).headers.get('idempotent-replayed')).toBe('true')
  })

  it('is compared after a hook has decoded it', async () => {
    app.addHook('preParsing', async (request, _reply, payload) => {
      if (request.headers['content-encoding'] !== 'gzip') return payload
      const bytes = Buffer.concat((await payload.toArray()) as Buffer[])
      return Object.assign(Readable.from([gunzipSync(bytes)]), { receivedEncodedLength: bytes.length })
    })
    app.post(
      '/orders',
      idempotent(orders(), async request => request.body),
    )
    await listen()
    const body = gzipSync('{ "sku": 1 }')
    const headers = { 'idempotency-key': 'k', 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const first = await fetch(`${url}/orders`, { method: 'POST', headers, body })
    expect([first.status, await first.json()]).toEqual([200, { sku: 1 }])
    expect((await post('/orders', { body: { sku: 1 } })).headers.get('idempotent-replayed')).toBe('true')
  })

  it('is compared when a plugin reads it from request.raw before the handler, as multipart plugins do', async () => {
    app.addContentTypeParser('application/x-parts', (_request, _payload, done) => done(null))
    app.addHook('preValidation', async request => {
      request.body = Buffer.concat((await request.raw.toArray()) as Buffer[]).toString()
    })
    app.post(
      '/orders',
      idempotent(orders(), async request => request.body),
    )
    await listen()
    const headers = { 'content-type': 'application/x-parts' }
    const large = 'x'.repeat(200_000)
    expect(await (await post('/orders', { headers, body: large })).text()).toBe(JSON.stringify(large))
    expect((await post('/orders', { headers, body: large })).headers.get('idempotent-replayed')).toBe('true')
    expect((await post('/orders', { headers, body: `${large}y` })).status).toBe(422)
  })

  it('is compared when the handler is the first to read it, and the handler reads all of it', async () => {
    let runs = 0
    app.addContentTypeParser('application/x-stream', (_request, payload, done) => done(null, payload))
    const read = async ({ body }: FastifyRequest) => Buffer.concat(await (body as Readable).toArray()).toString()
    app.post(
      '/orders',
      idempotent(orders(), async request => ({ runs: ++runs, body: await read(request) })),
    )
    await listen()
    const headers = { 'content-type': 'application/x-stream' }
    const first = await post('/orders', { headers, body: 'tea' })
    expect(await first.json()).toEqual({ runs: 1, body: '"tea"' })
    expect((await post('/orders', { headers, body: 'tea' })).headers.get('idempotent-replayed')).toBe('true')
    expect([(await post('/orders', { headers, body: 'pot' })).status, runs]).toEqual([422, 1])
  })

  it('is refused with the cure when a hook has replaced its stream and nobody has read it', async () => {
    let runs = 0
    app.addHook('preParsing', async (_request, _reply, payload) => payload.pipe(new PassThrough()))
    app.addContentTypeParser('application/x-stream', (_request, payload, done) => done(null, payload))
    app.post(
      '/orders',
      idempotent(orders(), async () => ({ runs: ++runs })),
    )
    await listen()
    const refused = await post('/orders', { headers: { 'content-type': 'application/x-stream' } })
    expect([refused.status, runs]).toEqual([500, 0])
    expect(await refused.json()).toMatchObject({ type: 'urn:latchkey:problem:body-unreadable' })
    expect((await store.list({ limit: 1 })).records).toEqual([])
  })
})

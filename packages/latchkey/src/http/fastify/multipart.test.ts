import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpRequest } from 'node:http'
import multipart, { type FastifyMultipartBaseOptions } from '@fastify/multipart'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sendOverHttp2 } from '../../../test/http/http2-client.ts'
import { reportsInto } from '../../../test/http/parsed-bodies.ts'
import { createLatchkey } from '../../engine/latchkey.ts'
import type { GuardedOperation } from '../../engine/operation.ts'
import type { Store } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { idempotent, latchkeyFastify } from './index.ts'

let store: Store
let app: FastifyInstance
let url: string
let reports: string[]
let runs: number

beforeEach(() => {
  store = memoryStore()
  reports = []
  runs = 0
})
afterEach(() => app.close())

const bodyBytesMax = 400_000

function uploads(): GuardedOperation<FastifyRequest> {
  const latchkey = createLatchkey<unknown, FastifyRequest>({
    store,
    scope: () => 'acme',
    telemetry: reportsInto(reports),
  })
  return latchkey.guarded('files.upload', { onFailure: 'hold', bodyBytesMax })
}

async function serve(
  declare: () => void,
  options: Partial<FastifyMultipartBaseOptions & { attachFieldsToBody: 'keyValues' }> = {},
): Promise<void> {
  app = fastify({ forceCloseConnections: true })
  await app.register(multipart, { limits: { fileSize: 10_000_000 }, ...options })
  await app.register(latchkeyFastify)
  declare()
  url = await app.listen({ host: '127.0.0.1', port: 0 })
}

/** Streams the upload, as the plugin's documentation shows it. */
async function measure(request: FastifyRequest) {
  const data = await request.file()
  let bytes = 0
  if (data !== undefined) for await (const chunk of data.file) bytes += Buffer.from(chunk).byteLength
  return { run: ++runs, name: data?.filename, bytes }
}

function form(bytes: number, fill = 'x', name = 'a.txt'): FormData {
  const body = new FormData()
  body.append('file', new Blob([fill.repeat(bytes)], { type: 'text/plain' }), name)
  return body
}

function post(body: RequestInit['body'], init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/files`, { method: 'POST', headers: { 'idempotency-key': 'k' }, body: body ?? null, ...init })
}

const isReplay = (response: Response) => response.headers.get('idempotent-replayed') === 'true'
const rows = async () => (await store.list({ limit: 10 })).records.map(({ state }) => state)

describe('an upload that the handler streams with request.file()', () => {
  it.each([10, 70_000, 300_000])('of %d bytes runs once, and is compared by its parts', async bytes => {
    await serve(() => void app.post('/files', idempotent(uploads(), measure)))
    const first = await post(form(bytes))
    expect([first.status, await first.json()]).toEqual([200, { run: 1, name: 'a.txt', bytes }])
    // Another boundary, and the same parts.
    const again = await post(form(bytes))
    expect([isReplay(again), await again.json()]).toEqual([true, { run: 1, name: 'a.txt', bytes }])
    expect([(await post(form(bytes, 'y'))).status, (await post(form(bytes, 'x', 'b.txt'))).status]).toEqual([422, 422])
    expect([runs, reports]).toEqual([1, []])
  })

  it('works behind the middleware form, and behind hooks that take their time', async () => {
    const slow = () => new Promise<void>(resolve => setTimeout(resolve, 50))
    await serve(() => void app.post('/files', { preHandler: [slow, idempotent(uploads())] }, measure))
    expect(await (await post(form(10), { headers: [['idempotency-key', 'small']] })).json()).toMatchObject({
      bytes: 10,
    })
    runs = 0
    expect(await (await post(form(70_000))).json()).toEqual({ run: 1, name: 'a.txt', bytes: 70_000 })
    expect([isReplay(await post(form(70_000))), runs]).toEqual([true, 1])
  })

  it('may come in chunks of no declared length', async () => {
    await serve(() => void app.post('/files', idempotent(uploads(), measure)))
    const chunked = async (fill: string) => {
      const { body, headers } = new Response(form(70_000, fill))
      const all = { 'idempotency-key': 'k', 'content-type': headers.get('content-type') ?? '' }
      return post(body, { headers: all, duplex: 'half' } as RequestInit)
    }
    expect(await (await chunked('x')).json()).toEqual({ run: 1, name: 'a.txt', bytes: 70_000 })
    expect([isReplay(await chunked('x')), (await chunked('y')).status, runs]).toEqual([true, 422, 1])
  })

  it('may come slowly, with its end in the same packet as its last bytes', async () => {
    await serve(() => void app.post('/files', idempotent(uploads(), measure)))
    const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    const slowly = async () => {
      const headers = { 'idempotency-key': 'k', 'content-type': 'multipart/form-data; boundary=b' }
      const sending = httpRequest(`${url}/files`, { method: 'POST', headers })
      sending.write(`${head}ab`)
      await new Promise(resolve => setTimeout(resolve, 50))
      sending.end('cd\r\n--b--\r\n')
      const [response] = (await once(sending, 'response')) as [IncomingMessage]
      return {
        replayed: response.headers['idempotent-replayed'],
        text: Buffer.concat(await response.toArray()).toString(),
      }
    }
    const text = JSON.stringify({ run: 1, name: 'a.txt', bytes: 4 })
    expect([await slowly(), await slowly()]).toEqual([
      { replayed: undefined, text },
      { replayed: 'true', text },
    ])
  })

  it('is refused over the limit, declared or not, and nothing is reserved', async () => {
    await serve(() => void app.post('/files', idempotent(uploads(), measure)))
    expect((await post(form(bodyBytesMax))).status).toBe(413)
    const { body, headers } = new Response(form(bodyBytesMax))
    const all = { 'idempotency-key': 'k', 'content-type': headers.get('content-type') ?? '' }
    expect((await post(body, { headers: all, duplex: 'half' } as RequestInit)).status).toBe(413)
    expect([runs, await rows()]).toEqual([0, []])
  })

  it('is refused while the client still sends it, and its connection serves the next request', async () => {
    await serve(() => void app.post('/files', idempotent(uploads(), measure)))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const headers = { 'idempotency-key': 'k', 'content-type': 'multipart/form-data; boundary=b' }
    const endless = httpRequest(`${url}/files`, { method: 'POST', headers, agent })
    endless.write(Buffer.alloc(bodyBytesMax + 1))
    const [refused] = (await once(endless, 'response')) as [IncomingMessage]
    refused.resume()
    // Much more than sockets hold: the server has to read it.
    endless.end(Buffer.alloc(20_000_000))
    const next = httpRequest(`${url}/files`, { method: 'POST', agent }).end()
    const [answered] = (await once(next, 'response')) as [IncomingMessage]
    answered.resume()
    expect([refused.statusCode, answered.statusCode, runs]).toEqual([413, 400, 0])
    agent.destroy()
  })

  it('reserves nothing when the client leaves before it is complete', async () => {
    await serve(() => void app.post('/files', idempotent(uploads(), measure)))
    const headers = {
      'idempotency-key': 'k',
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': '90000',
    }
    const cut = httpRequest(`${url}/files`, { method: 'POST', headers })
    cut.on('error', () => {})
    cut.write('--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf')
    await new Promise(resolve => setTimeout(resolve, 100))
    const closed = new Promise(resolve => cut.once('close', resolve))
    cut.destroy()
    await closed
    await new Promise(resolve => setTimeout(resolve, 100))
    expect([runs, await rows()]).toEqual([0, []])
    expect(await (await post(form(10))).json()).toMatchObject({ run: 1 })
  })

  it('leaves its connection usable when the handler reads nothing of it', async () => {
    await serve(
      () =>
        void app.post(
          '/files',
          idempotent(uploads(), async () => ({ run: ++runs })),
        ),
    )
    for (let sent = 0; sent < 5; sent++) {
      const response = await post(form(200_000), { headers: [['idempotency-key', `k${sent}`]] })
      expect(await response.json()).toEqual({ run: sent + 1 })
    }
  })

  it('is compared where the plugin has attached its fields to the body', async () => {
    const handler = idempotent(uploads(), async (request: FastifyRequest) => ({ run: ++runs, body: request.body }))
    await serve(() => void app.post('/files', handler), { attachFieldsToBody: 'keyValues' })
    const first = await post(form(70_000))
    expect([first.status, isReplay(await post(form(70_000))), (await post(form(70_000, 'y'))).status, runs]).toEqual([
      200,
      true,
      422,
      1,
    ])
  })

  it('is refused with the cure where a hook has begun to read it', async () => {
    await serve(() => {
      app.addHook('preHandler', async request => void (await request.file()))
      app.post('/files', idempotent(uploads(), measure))
    })
    const refused = await post(form(200_000))
    expect([refused.status, runs, await rows()]).toEqual([500, 0, []])
    expect(reports).toEqual([expect.stringContaining('attachFieldsToBody')])
  })

  it('works over HTTP/2 with a Content-Length, and is refused with the cure without one', async () => {
    const options = { forceCloseConnections: true, http2: true } as const
    const overHttp2 = fastify(options)
    app = overHttp2 as unknown as FastifyInstance // of another server, which nothing here looks at
    await app.register(multipart)
    await app.register(latchkeyFastify)
    app.post('/files', idempotent(uploads(), measure))
    const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
    const sent = new Response(form(70_000))
    const body = new Uint8Array(await sent.arrayBuffer())
    const headers = { 'idempotency-key': 'k', 'content-type': sent.headers.get('content-type') ?? '' }
    const ask = (more: object) => sendOverHttp2(port, { path: '/files', headers: { ...headers, ...more }, body })
    const declared = { 'content-length': String(body.byteLength) }
    const [first, again, undeclared] = [await ask(declared), await ask(declared), await ask({})]
    expect(JSON.parse(first.body)).toEqual({ run: 1, name: 'a.txt', bytes: 70_000 })
    expect([again.headers['idempotent-replayed'], undeclared.status, runs]).toEqual(['true', 500, 1])
    expect(reports).toEqual([expect.stringContaining('Content-Length')])
  })
})

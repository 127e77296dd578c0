import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { gzipSync, gunzipSync } from 'node:zlib'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import { eventually } from '../../../test/engine/fixture.ts'
import type { Execution } from '../../engine/execution.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import type { AtomicOperation } from '../../engine/operation.ts'
import { isLatchkeyError } from '../../ports/errors.ts'
import type { Store } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { type FastifyRequestLike, idempotent, latchkeyFastify } from './index.ts'

let store: Store
let latchkey: Latchkey<unknown, FastifyRequest>
let app: FastifyInstance
let url: string

beforeEach(async () => {
  store = memoryStore()
  latchkey = createLatchkey<unknown, FastifyRequest>({ store, scope: () => 'acme' })
  app = await newApp()
})

afterEach(async () => {
  await app.close()
  await latchkey.close()
})

async function newApp(): Promise<FastifyInstance> {
  const made = fastify({ forceCloseConnections: true })
  await made.register(latchkeyFastify)
  return made
}

const listen = async () => void (url = await app.listen({ host: '127.0.0.1', port: 0 }))
const orders = () => latchkey.guarded('orders.create', { onFailure: 'rerun' })

interface Sent {
  readonly key?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

function post(path: string, { key = 'k', body = { sku: 1 }, headers = {}, ...rest }: Sent = {}): Promise<Response> {
  const all = { 'idempotency-key': key, 'content-type': 'application/json', ...headers }
  return fetch(url + path, { method: 'POST', headers: all, body: JSON.stringify(body), ...rest })
}

async function rows(): Promise<readonly string[]> {
  return (await store.list({ limit: 10 })).records.map(record => record.state)
}

describe('where the claim stands', () => {
  it('lets authentication refuse first, wherever its hook was added', async () => {
    let allowed = false
    let runs = 0
    app.post(
      '/orders',
      { preHandler: guard },
      idempotent(orders(), async () => ({ runs: ++runs })),
    )
    app.addHook('preHandler', async (_, reply) => {
      reply.header('x-late-hook', 'ran')
    })
    await listen()
    async function guard(): Promise<void> {
      if (!allowed) throw Object.assign(new Error('who are you'), { statusCode: 401 })
    }
    expect((await post('/orders')).status).toBe(401)
    expect(await rows()).toEqual([])
    allowed = true
    expect((await post('/orders')).status).toBe(200)
    allowed = false
    expect((await post('/orders')).status).toBe(401)
    expect(runs).toBe(1)
  })

  it('lets the schema refuse first, and reserves nothing', async () => {
    const schema = { body: { type: 'object', required: ['sku'], properties: { sku: { type: 'integer' } } } }
    app.post(
      '/orders',
      { schema },
      idempotent(orders(), async () => 'done'),
    )
    await listen()
    expect((await post('/orders', { body: {} })).status).toBe(400)
    expect(await rows()).toEqual([])
    expect((await post('/orders', { body: { sku: 7 } })).status).toBe(200)
  })

  it('covers routes of encapsulated plugins, and leaves other routes alone', async () => {
    let runs = 0
    await app.register(
      async child =>
        void child.post(
          '/orders',
          idempotent(orders(), async () => ({ runs: ++runs })),
        ),
      { prefix: '/v1' },
    )
    app.post('/plain', async () => ({ runs: ++runs }))
    await listen()
    expect(await (await post('/v1/orders')).json()).toEqual({ runs: 1 })
    const again = await post('/v1/orders')
    expect([again.headers.get('idempotent-replayed'), await again.json()]).toEqual(['true', { runs: 1 }])
    expect(await (await post('/plain')).json()).toEqual({ runs: 2 })
  })

  it('refuses at start a route whose plugin is missing', async () => {
    const bare = fastify()
    let caught: unknown
    try {
      bare.post(
        '/orders',
        idempotent(orders(), async () => 'unprotected'),
      )
    } catch (error) {
      caught = error
    }
    expect(isLatchkeyError(caught, 'misconfigured')).toBe(true)
    await bare.close()
  })

  it('refuses every request of a wrapped handler that lost its hooks', async () => {
    let runs = 0
    const covered = idempotent(orders(), async (_request: FastifyRequest) => ({ runs: ++runs }))
    app.post('/orders', (request, reply) => Reflect.apply(covered, app, [request, reply]) as Promise<unknown>)
    await listen()
    expect((await post('/orders')).status).toBe(500)
    expect(runs).toBe(0)
  })

  it('leaves GET and the HEAD route that Fastify adds as they are', async () => {
    app.route({
      method: ['GET', 'POST'],
      url: '/orders',
      handler: idempotent(orders(), async (_request, _reply, execution) => ({ fence: execution.fence })),
    })
    await listen()
    expect(await (await fetch(`${url}/orders`)).json()).toEqual({ fence: 0 })
    expect((await fetch(`${url}/orders`, { method: 'HEAD' })).status).toBe(200)
    expect(await (await post('/orders')).json()).toEqual({ fence: 1 })
  })
})

describe('what is stored', () => {
  it('is what the error handler rendered', async () => {
    let runs = 0
    app.setErrorHandler((error: Error, _request, reply) =>
      reply.code(409).header('x-rendered', 'yes').send({ oops: error.message }),
    )
    app.post(
      '/orders',
      idempotent(orders(), async () => {
        runs += 1
        throw new Error(`sold out ${runs}`)
      }),
    )
    await listen()
    const first = await post('/orders')
    const again = await post('/orders')
    expect([first.status, await first.json()]).toEqual([409, { oops: 'sold out 1' }])
    expect([again.status, again.headers.get('x-rendered'), await again.json()]).toEqual([
      409,
      'yes',
      { oops: 'sold out 1' },
    ])
    expect([again.headers.get('idempotent-replayed'), runs]).toEqual(['true', 1])
  })

  it('is the whole of a stream given to reply.send, by a handler that uses no promise', async () => {
    let runs = 0
    app.post(
      '/orders',
      idempotent(orders(), (_request, reply) => {
        runs += 1
        setTimeout(() => {
          void reply.type('text/csv').send(Readable.from([Buffer.from('a,b\n'), Buffer.from('1,2\n')]))
        }, 5)
      }),
    )
    await listen()
    const first = await post('/orders')
    const again = await post('/orders')
    expect([await first.text(), first.headers.get('content-type')]).toEqual(['a,b\n1,2\n', 'text/csv'])
    expect([await again.text(), again.headers.get('content-type'), runs]).toEqual(['a,b\n1,2\n', 'text/csv', 1])
  })

  it('is what onSend hooks made of it, and they do not work on a replay a second time', async () => {
    let compressed = 0
    app.addHook('onSend', async (_request, reply, payload) => {
      compressed += 1
      reply.header('content-encoding', 'gzip').header('vary', 'accept-encoding')
      return gzipSync(typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : '')
    })
    app.post(
      '/orders',
      idempotent(orders(), async () => ({ order: 1 })),
    )
    await listen()
    const plain = { 'accept-encoding': 'identity' }
    const first = await raw('/orders', { 'accept-encoding': 'gzip' })
    const again = await raw('/orders', { 'accept-encoding': 'gzip' })
    const decoded = await raw('/orders', plain)
    expect(gunzipSync(first.body).toString()).toBe('{"order":1}')
    expect(again.body.equals(first.body)).toBe(true)
    expect([again.headers['content-encoding'], again.headers['content-type'], again.headers['vary']]).toEqual([
      'gzip',
      'application/json; charset=utf-8',
      'accept-encoding',
    ])
    expect([decoded.headers['content-encoding'], decoded.body.toString()]).toEqual([undefined, '{"order":1}'])
    expect(compressed).toBe(3)
  })

  it('is what the handler wrote to reply.raw', async () => {
    let runs = 0
    app.post(
      '/orders',
      idempotent(orders(), async (_request, reply) => {
        runs += 1
        reply.raw.writeHead(201, { 'content-type': 'text/plain', 'x-raw': 'yes' })
        reply.raw.write('by ')
        reply.raw.end('hand')
        return reply
      }),
    )
    await listen()
    const first = await post('/orders')
    const again = await post('/orders')
    expect([first.status, await first.text()]).toEqual([201, 'by hand'])
    expect([again.status, again.headers.get('x-raw'), await again.text(), runs]).toEqual([201, 'yes', 'by hand', 1])
  })

  it('keeps headers of earlier hooks out, and sends them fresh with a replay', async () => {
    let requests = 0
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('x-serial', String(++requests)).header('set-cookie', `visit=${requests}`)
    })
    app.post(
      '/orders',
      idempotent(orders(), async (_request, reply) => reply.header('location', '/orders/1').code(201).send({ id: 1 })),
    )
    await listen()
    const first = await post('/orders')
    const again = await post('/orders')
    expect([first.headers.get('x-serial'), again.headers.get('x-serial')]).toEqual(['1', '2'])
    expect([again.headers.getSetCookie(), again.headers.get('location')]).toEqual([['visit=2'], '/orders/1'])
  })
})

describe("the framework's own ways", () => {
  it('gives a handler its instance as this, runs a lazy thenable once, and sends a 404 by callNotFound', async () => {
    let runs = 0
    app.decorate('shop', 'acme')
    app.post(
      '/shop',
      idempotent(orders(), function (this: unknown) {
        // Called by Fastify, so `this` is the instance.
        return Promise.resolve(Reflect.get(this as object, 'shop'))
      }),
    )
    // As a query builder: it runs when somebody waits for it.
    app.post(
      '/lazy',
      idempotent(orders(), () => ({ then: (resolve: (value: object) => void) => resolve({ runs: ++runs }) })),
    )
    app.post(
      '/none',
      idempotent(orders(), (_request, reply) => reply.callNotFound()),
    )
    await listen()
    expect(await (await post('/shop', { key: 'a' })).text()).toBe('acme')
    expect(await (await post('/lazy', { key: 'b' })).json()).toEqual({ runs: 1 })
    expect((await post('/none', { key: 'c' })).status).toBe(404)
    expect((await post('/none', { key: 'c' })).headers.get('idempotent-replayed')).toBe('true')
  })

  it('runs onResponse hooks once for an answer and once for its replay', async () => {
    const seen: number[] = []
    app.addHook('onResponse', async (_request, reply) => void seen.push(reply.statusCode))
    app.post(
      '/orders',
      idempotent(orders(), async (_request, reply) => reply.code(201).send({ id: 1 })),
    )
    await listen()
    await post('/orders')
    await post('/orders')
    await eventually(() => seen.length === 2)
    expect(seen).toEqual([201, 201])
  })

  it('answers inject() as it answers a socket', async () => {
    let runs = 0
    app.post(
      '/orders',
      idempotent(orders(), async () => ({ runs: ++runs })),
    )
    const ask = () =>
      app.inject({ method: 'POST', url: '/orders', headers: { 'idempotency-key': 'k' }, payload: { sku: 1 } })
    const first = await ask()
    const again = await ask()
    expect([first.statusCode, first.json()]).toEqual([200, { runs: 1 }])
    expect([again.headers['idempotent-replayed'], again.json()]).toEqual(['true', { runs: 1 }])
  })
})

describe('what cannot be stored', () => {
  it('sends a hijacked reply whole, tells the retry, and does not run again', async () => {
    let runs = 0
    app.post(
      '/orders',
      idempotent(orders(), async (_request, reply) => {
        runs += 1
        reply.hijack()
        reply.raw.end('taken over')
      }),
    )
    await listen()
    expect(await (await post('/orders')).text()).toBe('taken over')
    const again = await post('/orders')
    expect([again.status, runs]).toEqual([410, 1])
    expect(await again.json()).toMatchObject({ type: 'urn:latchkey:problem:response-not-stored', original_status: 200 })
  })

  it('ends the connection of a hijacked reply whose handler threw, and lets the retry run', async () => {
    let runs = 0
    app.post(
      '/orders',
      idempotent(orders(), async (_request, reply) => {
        if (++runs > 1) return { runs }
        reply.hijack()
        throw new Error('after the hijack')
      }),
    )
    await listen()
    await expect(post('/orders')).rejects.toThrow()
    expect(await (await post('/orders')).json()).toEqual({ runs: 2 })
  })
})

describe('a client or a server that loses patience', () => {
  it('hides the disconnect from the handler, stores an empty answer, and replays it', async () => {
    let open: () => void = () => {}
    const gate = new Promise<void>(resolve => (open = resolve))
    const seen: unknown[] = []
    let runs = 0
    app.post(
      '/orders',
      idempotent(orders(), async (request, reply) => {
        runs += 1
        request.raw.on('close', () => seen.push('close'))
        request.signal.addEventListener('abort', () => seen.push('abort'))
        await gate
        seen.push(request.raw.aborted, request.raw.socket.destroyed, reply.raw.destroyed)
        reply.code(204)
      }),
    )
    const closed = new Promise<void>(resolve =>
      app.server.on('connection', socket => socket.on('close', () => resolve())),
    )
    await listen()
    const impatient = new AbortController()
    const lost = post('/orders', { signal: impatient.signal }).catch(() => 'lost')
    await eventually(() => runs === 1)
    impatient.abort()
    await Promise.all([lost, closed])
    open()
    await eventually(async () => (await rows())[0] === 'completed')
    expect(seen.slice(0, 3)).toEqual([false, false, false])
    const again = await post('/orders')
    expect([again.status, again.headers.get('idempotent-replayed'), runs]).toEqual([204, 'true', 1])
  })

  it('answers at the handler timeout, and holds the claim until the handler has ended', async () => {
    let open: () => void = () => {}
    const gate = new Promise<void>(resolve => (open = resolve))
    let runs = 0
    app.post(
      '/orders',
      { handlerTimeout: 50 },
      idempotent(orders(), async () => {
        if (++runs === 1) await gate
        return { runs }
      }),
    )
    await listen()
    // Without a body: Fastify takes the end of one for a disconnect, and stops its timer.
    const ask = () => fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k' } })
    expect((await ask()).status).toBe(503)
    expect((await ask()).status).toBe(409)
    open()
    await eventually(async () => (await rows())[0] === 'failed_retryable')
    expect(await (await ask()).json()).toEqual({ runs: 2 })
  })
})

it("hands the handler Fastify's own types, and the execution of its operation", () => {
  interface Order {
    readonly sku: number
  }
  const atomic = null as unknown as AtomicOperation<{ query(sql: string): void }, FastifyRequest>
  const wrap = () => {
    idempotent(orders(), async (request, reply, execution) => {
      expectTypeOf(request).toExtend<FastifyRequest>()
      expectTypeOf(reply).toEqualTypeOf<FastifyReply>()
      expectTypeOf(execution).toEqualTypeOf<Execution>()
    })
    app.post(
      '/orders',
      { schema: {} },
      idempotent(atomic, async (request: FastifyRequest<{ Body: Order }>, reply, { tx }) => {
        expectTypeOf(request.body).toEqualTypeOf<Order>()
        expectTypeOf(tx.query).toBeFunction()
        return reply.code(201).send({ sku: request.body.sku })
      }),
    )
    // @ts-expect-error A guarded handler has no transaction.
    idempotent(orders(), async (_request, _reply, { tx }) => tx)
  }
  expect(wrap).toBeTypeOf('function')
})

it('works over HTTP/2', async () => {
  await app.close()
  let runs = 0
  const secure = fastify({ http2: true })
  await secure.register(latchkeyFastify)
  const operation = createLatchkey<unknown, unknown>({ store, scope: () => 'acme' }).guarded('orders.create', {
    onFailure: 'rerun',
  })
  secure.post(
    '/orders',
    idempotent(operation, async (request: FastifyRequestLike & { body: unknown }) => ({
      runs: ++runs,
      got: request.body,
    })),
  )
  await secure.listen({ host: '127.0.0.1', port: 0 })
  const client = connectHttp2(`http://127.0.0.1:${(secure.server.address() as AddressInfo).port}`)
  const ask = async () => {
    const stream = client.request({
      ':method': 'POST',
      ':path': '/orders',
      'idempotency-key': 'k',
      'content-type': 'application/json',
    })
    stream.end('{"sku":1}')
    const [head] = (await once(stream, 'response')) as [Record<string, string>]
    return [head['idempotent-replayed'], Buffer.concat(await stream.toArray()).toString()]
  }
  expect(await ask()).toEqual([undefined, '{"runs":1,"got":{"sku":1}}'])
  expect(await ask()).toEqual(['true', '{"runs":1,"got":{"sku":1}}'])
  client.close()
  await secure.close()
})

/** fetch decodes; this does not. */
function raw(
  path: string,
  headers: Record<string, string>,
): Promise<{ body: Buffer; headers: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const all = { 'idempotency-key': 'k', 'content-type': 'application/json', ...headers }
    const sent = httpRequest(url + path, { method: 'POST', headers: all, agent: false }, incoming => {
      incoming
        .toArray()
        .then(chunks => resolve({ body: Buffer.concat(chunks as Buffer[]), headers: incoming.headers }), reject)
    })
    sent.on('error', reject)
    sent.end('{"sku":1}')
  })
}

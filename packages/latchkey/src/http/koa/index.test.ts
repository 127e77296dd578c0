import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gzipSync, gunzipSync } from 'node:zlib'
import Koa, { type Context, type Next } from 'koa'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/engine/fixture.ts'
import { door } from '../../../test/http/door.ts'
import { deep, lookalikes, reportsInto } from '../../../test/http/parsed-bodies.ts'
import { oneConnection } from '../../../test/http/one-connection.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import { sqliteHarness } from '../../../test/sqlite/fixture.ts'
import type { TransactionalHarness } from '@latchkey/conformance'
import type { AtomicExecution } from '../../engine/execution.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import type { Store } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { captureBody, executionOf, idempotent } from './index.ts'

let store: Store
let latchkey: Latchkey<unknown, Context>
let app: Koa
let url: string
const servers: (Server | Http2Server)[] = []
let reports: string[]

beforeEach(() => {
  store = memoryStore()
  reports = []
  latchkey = createLatchkey<unknown, Context>({ store, scope: () => 'acme', telemetry: reportsInto(reports) })
  app = new Koa()
  app.silent = true
})

afterEach(async () => {
  for (const server of servers.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  await latchkey.close()
})

function serve(req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse): void {
  void app.callback()(req, res)
}

async function listen(server: Server | Http2Server = createServer(serve)): Promise<number> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  url = `http://127.0.0.1:${port}`
  return port
}

const orders = () => latchkey.guarded('orders.create', { onFailure: 'rerun' })

interface Sent {
  readonly body?: string
  readonly headers?: Record<string, string>
}

function post(path: string, { body = '{"sku":1}', headers = {} }: Sent = {}): Promise<Response> {
  const all = { 'idempotency-key': 'k', 'content-type': 'application/json', ...headers }
  return fetch(url + path, { method: 'POST', headers: all, body })
}

async function read(ctx: Context, next: Next): Promise<void> {
  const bytes = await buffer(ctx.req)
  const parsed: unknown = ctx.is('json') === 'json' ? JSON.parse(bytes.toString()) : {}
  Reflect.set(ctx.request, 'body', parsed)
  await next()
}

async function states(of: Store = store): Promise<readonly string[]> {
  return (await of.list({ limit: 10 })).records.map(record => record.state)
}

describe('what is stored', () => {
  const bodies: [string, () => unknown, string][] = [
    ['an object', () => ({ a: 1 }), '{"a":1}'],
    ['a string', () => 'text', 'text'],
    ['bytes', () => Buffer.from('bytes'), 'bytes'],
    ['a stream', () => Readable.from(['str', 'eam']), 'stream'],
    ['a web stream', () => new Blob(['web']).stream(), 'web'],
    ['a blob', () => new Blob(['blob']), 'blob'],
    ['a response', () => new Response('fetched'), 'fetched'],
    ['nothing', () => null, ''],
  ]
  for (const [what, make, text] of bodies) {
    it(`is the body that Koa made of ${what}`, async () => {
      let runs = 0
      app.use(read).use(
        idempotent(orders(), (ctx: Context) => {
          runs += 1
          ctx.body = make()
        }),
      )
      await listen()
      const first = await post('/orders')
      const again = await post('/orders')
      expect([first.status, await first.text()]).toEqual([text === '' ? 204 : 200, text])
      expect([again.status, again.headers.get('content-type'), await again.text(), runs]).toEqual([
        first.status,
        first.headers.get('content-type'),
        text,
        1,
      ])
      expect(again.headers.get('idempotent-replayed')).toBe('true')
    })
  }

  it("is Koa's own 404 when nothing answered", async () => {
    app.use(read).use(idempotent(orders()))
    await listen()
    expect([(await post('/orders')).status, (await post('/orders')).headers.get('idempotent-replayed')]).toEqual([
      404,
      'true',
    ])
  })

  it('is what outer middleware made of it, and a replay is not worked on a second time', async () => {
    let wrapped = 0
    app.use(async (ctx, next) => {
      await next()
      if (ctx.respond === false) return
      wrapped += 1
      ctx.set('Content-Encoding', 'gzip')
      ctx.body = gzipSync(JSON.stringify({ data: ctx.body }))
    })
    app.use(read).use(idempotent(orders(), (ctx: Context) => void (ctx.body = { id: 7 })))
    await listen()
    for (const replayed of [null, 'true']) {
      const received = await post('/orders')
      expect([received.headers.get('idempotent-replayed'), await received.json()]).toEqual([
        replayed,
        { data: { id: 7 } },
      ])
    }
    expect(wrapped).toBe(1)
    const [record] = (await store.list({ limit: 1 })).records
    const kept = await store.read(record?.id ?? '')
    expect(gunzipSync(kept?.outcome?.body ?? '').toString()).toBe('{"data":{"id":7}}')
  })

  it('lets outer middleware see the status of a replay and ignores the headers it sets too late', async () => {
    const seen: unknown[] = []
    app.use(async (ctx, next) => {
      await next()
      seen.push(ctx.status)
      ctx.set('X-Late', 'yes')
    })
    app.use(read).use(
      idempotent(orders(), (ctx: Context) => {
        ctx.status = 201
        ctx.body = 'made'
      }),
    )
    await listen()
    await post('/orders')
    expect((await post('/orders')).status).toBe(201)
    expect(seen).toEqual([201, 201])
  })

  it('is what an error handler outside rendered, and the throw passes through it', async () => {
    let runs = 0
    app.use(async (ctx, next) => {
      await next().catch((error: Error) => {
        ctx.status = 409
        ctx.body = { oops: error.message }
      })
    })
    app.use(read).use(
      idempotent(orders(), () => {
        runs += 1
        throw new Error('sold out')
      }),
    )
    await listen()
    expect(await (await post('/orders')).json()).toEqual({ oops: 'sold out' })
    const again = await post('/orders')
    expect([again.status, await again.json(), runs]).toEqual([409, { oops: 'sold out' }, 1])
  })
})

describe('a client that leaves', () => {
  it('does not end a body stream that is under way', async () => {
    const gate = door()
    async function* slowly(): AsyncGenerator<string> {
      yield 'one '
      await gate.pass()
      yield 'two'
    }
    app
      .use(read)
      .use(
        idempotent(
          latchkey.guarded('orders.create', { onFailure: 'hold' }),
          (ctx: Context) => void (ctx.body = Readable.from(slowly())),
        ),
      )
    await listen()
    const leaving = new AbortController()
    const left = fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'idempotency-key': 'k' },
      signal: leaving.signal,
    }).catch(() => 'left')
    await gate.reached
    leaving.abort()
    expect(await left).toBe('left')
    await new Promise(resolve => setTimeout(resolve, 100))
    gate.open()
    await eventually(async () => (await states())[0] !== 'in_progress')
    expect(await states()).toEqual(['completed'])
    const retry = await fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k' } })
    expect([retry.headers.get('idempotent-replayed'), await retry.text()]).toEqual(['true', 'one two'])
  })

  it('does not answer in place of the handler when the connection is reset', async () => {
    const gate = door()
    const told: unknown[] = []
    app.on('error', error => told.push(error))
    app.use(read).use(
      idempotent(latchkey.guarded('orders.create', { onFailure: 'hold' }), async (ctx: Context) => {
        await gate.pass()
        ctx.body = 'made'
      }),
    )
    const port = await listen()
    const socket = connect(port, '127.0.0.1')
    socket.write('POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n\r\n')
    await gate.reached
    socket.resetAndDestroy()
    await eventually(() => told.length > 0)
    expect(await states()).toEqual(['in_progress'])
    gate.open()
    await eventually(async () => (await states())[0] !== 'in_progress')
    const retry = await fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k' } })
    expect([retry.status, await retry.text()]).toEqual([200, 'made'])
  })
})

describe('the body', () => {
  it('is refused when the parser lost what tells two integers apart, and the cure helps', async () => {
    const big = '{"id":9007199254740993}'
    const bigger = '{"id":9007199254740992}'
    app.use((ctx, next) => (ctx.get('x-capture') === 'yes' ? captureBody()(ctx, next) : next()))
    app.use(read).use(idempotent(orders(), (ctx: Context) => void (ctx.body = 'made')))
    await listen()
    const refused = await post('/orders', { body: big })
    expect([refused.status, await refused.text()]).toEqual([415, expect.not.stringContaining('captureBody')])
    expect(reports).toEqual([expect.stringContaining('captureBody()')])
    expect(await states()).toEqual([])
    const headers = { 'x-capture': 'yes' }
    expect((await post('/orders', { body: big, headers })).status).toBe(200)
    expect((await post('/orders', { body: bigger, headers })).status).toBe(422)
  })

  it('is told from its look-alike when only a parsed one is left, and refused when it is nested too deep', async () => {
    app.use(read).use(idempotent(orders(), (ctx: Context) => void (ctx.body = 'made')))
    await listen()
    for (const [number, [one, other]] of lookalikes.entries()) {
      const headers = { 'idempotency-key': `k${number}` }
      expect((await post('/orders', { body: one, headers })).status, one).toBe(200)
      expect((await post('/orders', { body: other, headers })).status, other).toBe(422)
    }
    const refused = await post('/orders', { body: deep, headers: { 'idempotency-key': 'deep' } })
    expect([refused.status, await refused.json()]).toEqual([413, expect.objectContaining({ levels_max: 256 })])
  })

  it('counts under the path before a mounted app cut its prefix off', async () => {
    app.use(async (ctx, next) => {
      ctx.path = ctx.path.replace(/^\/v\d/, '')
      await next()
    })
    app.use(read).use(idempotent(orders(), (ctx: Context) => void (ctx.body = ctx.path)))
    await listen()
    expect(await (await post('/v1/orders')).text()).toBe('/orders')
    expect((await post('/v2/orders')).status).toBe(422)
  })
})

describe('atomic', () => {
  let database: TransactionalHarness
  let atomic: Latchkey<unknown, Context>
  beforeEach(async () => {
    database = await adapterStores.transactional()
    atomic = createLatchkey<unknown, Context>({ store: database.store, scope: () => 'acme' })
  })
  afterEach(async () => {
    await atomic.close()
    await database.close()
  })

  it('rolls back and takes the answer back when the handler throws after it has answered', async () => {
    let runs = 0
    app.use(read).use(
      idempotent(atomic.atomic('orders.create'), async (ctx: Context, { tx }) => {
        runs += 1
        await database.insert(tx, `order-${runs}`)
        ctx.respond = false
        ctx.res.writeHead(201, { 'x-mine': 'yes' }).end('made')
        if (runs === 1) throw new Error('too late')
      }),
    )
    await listen()
    const first = await post('/orders')
    expect([first.status, first.headers.get('x-mine'), await database.values()]).toEqual([500, null, []])
    expect([(await post('/orders')).status, await database.values()]).toEqual([201, ['order-2']])
  })

  it('answers 503 when the transaction runs out of time, and a handler that goes on disturbs nobody', async () => {
    const slow = await sqliteHarness(path => new Database(path))
    const hurried = createLatchkey<unknown, Context>({
      store: await slow.open({ transactionMs: 100 }),
      scope: () => 'acme',
    })
    const gate = door()
    const ends: string[] = []
    app.use(
      idempotent(hurried.atomic('orders.create'), async (ctx: Context) => {
        if (ends.length === 0) await gate.pass()
        ctx.respond = false
        ctx.res.statusCode = 201
        ctx.res.write('ma')
        ctx.res.end('de')
        ends.push('ended')
      }),
    )
    await listen()
    const connection = oneConnection(`${url}/orders`)
    try {
      expect((await connection.ask())[0]).toBe(503)
      gate.open()
      await eventually(() => ends.length === 1)
      expect(await connection.ask()).toEqual([201, 'made', true])
    } finally {
      connection.destroy()
      await hurried.close()
      await slow.close()
    }
  })

  it('rolls back a throw behind the middleware form, whose transaction is in executionOf(ctx)', async () => {
    app.use(read).use(idempotent(atomic.atomic('orders.create')))
    app.use(async ctx => {
      await database.insert(executionOf<AtomicExecution<unknown>>(ctx)?.tx, 'order')
      ctx.throw(409, 'sold out')
    })
    await listen()
    expect([(await post('/orders')).status, await database.values()]).toEqual([409, []])
    expect((await post('/orders')).headers.get('idempotent-replayed')).toBe('true')
  })
})

it('serves HTTP/2', async () => {
  let runs = 0
  app.use(captureBody()).use(read)
  app.use(idempotent(orders(), (ctx: Context) => void (ctx.body = { runs: ++runs })))
  await listen(createHttp2Server(serve))
  const client = connectHttp2(url)
  const exchange = async () => {
    const stream = client.request({
      ':method': 'POST',
      ':path': '/orders',
      'idempotency-key': 'k',
      'content-type': 'application/json',
    })
    const head = once(stream, 'response')
    stream.end('{"sku":1}')
    const [headers] = (await head) as [Record<string, string>] // the event's own signature
    return [headers[':status'], headers['idempotent-replayed'], (await buffer(stream)).toString()]
  }
  try {
    expect(await exchange()).toEqual([200, undefined, '{"runs":1}'])
    expect(await exchange()).toEqual([200, 'true', '{"runs":1}'])
  } finally {
    client.close()
  }
})

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import express5, { type NextFunction, type Request, type Response as Res } from 'express'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/engine/fixture.ts'
import { door } from '../../../test/http/door.ts'
import { reportsInto } from '../../../test/http/parsed-bodies.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import { notExecuted } from '../../ports/errors.ts'
import type { Store } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { captureBody, captureVerify, executionOf, idempotent, rememberErrors } from './index.ts'

const require = createRequire(import.meta.url)
// Its types are those of version 5 in everything that is used here.
const express4 = require('express4') as typeof express5
// The copy that Express itself uses: all users of one copy share a listener on the response.
const onFinished = createRequire(require.resolve('express'))('on-finished') as (res: Res, run: () => void) => void

let store: Store
let latchkey: Latchkey<unknown, Request>
let url: string
let server: Server | undefined
let reports: string[]

beforeEach(() => {
  store = memoryStore()
  reports = []
  latchkey = createLatchkey<unknown, Request>({ store, scope: () => 'acme', telemetry: reportsInto(reports) })
})

afterEach(async () => {
  server?.closeAllConnections()
  await new Promise(resolve => (server === undefined ? resolve(undefined) : server.close(resolve)))
  server = undefined
  await latchkey.close()
})

function newApp(express = express5): ReturnType<typeof express5> {
  const app = express()
  app.set('env', 'test')
  return app
}

async function listen(app: (req: IncomingMessage, res: ServerResponse) => void): Promise<void> {
  server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on TCP
}

const orders = () => latchkey.guarded('orders.create', { onFailure: 'rerun' })

interface Sent {
  readonly body?: string | FormData | Uint8Array<ArrayBuffer>
  readonly type?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

function post(path = '/orders', { body = '{"sku":1}', type = 'application/json', headers = {}, ...rest }: Sent = {}) {
  const typed: Record<string, string> = body instanceof FormData ? {} : { 'content-type': type }
  return fetch(url + path, { method: 'POST', headers: { 'idempotency-key': 'k', ...typed, ...headers }, body, ...rest })
}

async function states(): Promise<readonly string[]> {
  return (await store.list({ limit: 10 })).records.map(record => record.state)
}

const renderErrors = (error: Error, _req: Request, res: Res, _next: NextFunction) =>
  void res.status(409).json({ oops: error.message })

for (const [version, express] of [
  ['Express 5', express5],
  ['Express 4', express4],
] as const) {
  describe(version, () => {
    for (const [how, handler] of [
      ['throws', () => fail('sold out')],
      ['rejects', async () => fail('sold out')],
    ] as const) {
      it(`hands what the handler ${how} to the app's error middleware, and keeps what that renders`, async () => {
        let runs = 0
        const app = newApp(express).use(express.json())
        app.post(
          '/orders',
          idempotent(orders(), () => {
            runs += 1
            return handler()
          }),
        )
        app.use(renderErrors)
        await listen(app)
        expect([(await post()).status, runs]).toEqual([409, 1])
        const again = await post()
        expect([again.status, await again.json(), runs]).toEqual([409, { oops: 'sold out' }, 1])
      })
    }

    it('shows later handlers their execution, and hears their errors through rememberErrors', async () => {
      let runs = 0
      const app = newApp(express).use(express.json())
      app.post('/orders', idempotent(latchkey.guarded('orders.create', { onFailure: 'hold' })), (req, res, next) => {
        runs += 1
        if (runs === 1) return next(notExecuted(new Error('refused')))
        res.json({ attempt: executionOf(req)?.attempt, key: executionOf(req)?.key })
      })
      app.use(rememberErrors(), renderErrors)
      await listen(app)
      expect((await post()).status).toBe(409)
      expect(await states()).toEqual(['failed_retryable'])
      const again = await post()
      expect([await again.json(), again.headers.get('idempotent-replayed')]).toEqual([{ attempt: 2, key: 'k' }, null])
    })

    it('counts under the path before a router cut its mount path off', async () => {
      const router = express.Router()
      router.post(
        '/orders',
        idempotent(orders(), (req: Request, res: Res) => res.send(req.url)),
      )
      await listen(newApp(express).use(express.json()).use(['/v1', '/v2'], router))
      expect(await (await post('/v1/orders')).text()).toBe('/orders')
      expect((await post('/v2/orders')).status).toBe(422)
    })

    it('refuses a body that nobody has read, and takes a request without one', async () => {
      const app = newApp(express).use(express.json())
      app.post(
        '/orders',
        idempotent(orders(), (_req: Request, res: Res) => res.send('made')),
      )
      await listen(app)
      const refused = await post('/orders', { body: 'a,b', type: 'text/csv' })
      expect([refused.status, await refused.text()]).toEqual([500, expect.not.stringContaining('idempotent()')])
      expect(reports).toEqual([expect.stringContaining('before idempotent()')])
      expect(await states()).toEqual([])
      for (const replayed of [null, 'true']) {
        const bare = await fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k' } })
        expect([bare.status, bare.headers.get('idempotent-replayed')]).toEqual([200, replayed])
      }
    })
  })
}

function fail(message: string): never {
  throw new Error(message)
}

describe('where it stands', () => {
  it('comes after authentication, for replays too', async () => {
    let allowed = true
    const app = newApp().use(express5.json())
    const auth = (_req: Request, res: Res, next: NextFunction) => void (allowed ? next() : res.sendStatus(401))
    app.post('/orders', auth, idempotent(orders()), (_req, res) => void res.send('made'))
    await listen(app)
    expect((await post()).status).toBe(200)
    allowed = false
    expect((await post()).status).toBe(401)
  })

  it('stores plain bytes under a compression outside, which compresses the replay as well', async () => {
    const app = newApp().use(compress).use(express5.json())
    app.post(
      '/orders',
      idempotent(orders(), (_req: Request, res: Res) => res.json({ id: 7 })),
    )
    await listen(app)
    for (const replayed of [null, 'true']) {
      const received = await post()
      expect(received.headers.get('content-encoding')).toBe('gzip')
      expect([received.headers.get('idempotent-replayed'), await received.json()]).toEqual([replayed, { id: 7 }])
    }
    const [record] = (await store.list({ limit: 1 })).records
    const kept = (await store.read(record?.id ?? ''))?.outcome
    expect(Buffer.from(kept?.body ?? '').toString()).toBe('{"id":7}')
    expect(kept?.headers.some(([name]) => name.toLowerCase() === 'content-encoding')).toBe(false)
  })

  it('passes other methods on, without an execution', async () => {
    const app = newApp()
    app.put('/orders', idempotent(orders()), (req, res) => void res.json({ covered: executionOf(req) !== undefined }))
    await listen(app)
    const put = await fetch(`${url}/orders`, { method: 'PUT' })
    expect(await put.json()).toEqual({ covered: false })
  })
})

/** As the usual module does it: over the response's own methods, before anything else runs. */
function compress(_req: Request, res: Res, next: NextFunction): void {
  const { end } = res
  res.end = (chunk?: unknown) => {
    res.setHeader('Content-Encoding', 'gzip')
    res.removeHeader('Content-Length')
    return end.call(res, gzipSync(chunk as Uint8Array), 'utf8') // whoever answers here gives bytes
  }
  next()
}

describe('the body', () => {
  const big = '{"id":9007199254740993}'
  const bigger = '{"id":9007199254740992}'
  const made = () => idempotent(orders(), (req: Request, res: Res) => res.send(req.body))

  it('is refused when only a parsed one is left that holds an unsafe integer, and the log has the cure', async () => {
    await listen(newApp().use(express5.json()).post('/orders', made()))
    const refused = await post('/orders', { body: big })
    expect([refused.status, await refused.text()]).toEqual([415, expect.not.stringContaining('capture')])
    expect(reports).toEqual([expect.stringMatching(/body-unsupported.*captureBody\(\).*captureVerify/)])
    expect(await states()).toEqual([])
  })

  for (const [how, app] of [
    ['captureBody', () => newApp().use(captureBody(), express5.json())],
    ['captureVerify', () => newApp().use(express5.json({ verify: captureVerify }))],
  ] as const) {
    it(`is compared by its raw bytes with ${how}`, async () => {
      await listen(app().post('/orders', made()))
      expect((await post('/orders', { body: big })).status).toBe(200)
      expect((await post('/orders', { body: bigger })).status).toBe(422)
      expect((await post('/orders', { body: big })).headers.get('idempotent-replayed')).toBe('true')
    })
  }

  it('is compared decompressed with captureVerify', async () => {
    await listen(
      newApp()
        .use(express5.json({ verify: captureVerify }))
        .post('/orders', made()),
    )
    const headers = { 'content-encoding': 'gzip' }
    expect((await post('/orders', { body: Uint8Array.from(gzipSync('{"a":1}')), headers })).status).toBe(200)
    const again = await post('/orders', { body: '{ "a": 1 }' })
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
  })

  const form = (content: string) => {
    const data = new FormData()
    data.set('file', new Blob([content]), 'a.txt')
    return { body: data }
  }
  /** As multipart parsers do it: by a pipe. */
  const multipart = (req: Request, _res: Res, next: NextFunction) => {
    const sink = new Writable({ write: (_chunk, _encoding, done) => done() })
    pipeline(req, sink).then(() => {
      req.body = { field: 1 }
      next()
    }, next)
  }

  it('is refused when it was a multipart one that a parser consumed', async () => {
    await listen(newApp().use(multipart).post('/orders', made()))
    const refused = await post('/orders', form('one'))
    expect([refused.status, await refused.text()]).toEqual([415, expect.not.stringContaining('captureBody')])
    expect(reports).toEqual([expect.stringContaining('captureBody()')])
  })

  it('is compared part by part when captureBody saw a multipart one pass', async () => {
    await listen(newApp().use(captureBody(), multipart).post('/orders', made()))
    expect((await post('/orders', form('one'))).status).toBe(200)
    // Another boundary, the same parts.
    expect((await post('/orders', form('one'))).headers.get('idempotent-replayed')).toBe('true')
    expect((await post('/orders', form('two'))).status).toBe(422)
  })

  it('is refused when it is larger than captureBody keeps, with the limit', async () => {
    await listen(
      newApp()
        .use(captureBody({ bodyBytesMax: 10 }), express5.json())
        .post('/orders', made()),
    )
    expect((await post('/orders', { body: '{"sku": 1}' })).status).toBe(200)
    const refused = await post('/orders', { body: '{"sku": 10}', headers: { 'idempotency-key': 'k2' } })
    expect([refused.status, await refused.json()]).toEqual([413, expect.objectContaining({ bytes_max: 10 })])
  })

  it('is whole although middleware waited between captureBody and the parser', async () => {
    const slow = (_req: Request, _res: Res, next: NextFunction) => void setTimeout(next, 30)
    await listen(newApp().use(slow, captureBody(), slow, express5.json()).post('/orders', made()))
    expect(await (await post('/orders', { body: big })).json()).toEqual({ id: 2 ** 53 })
    expect((await post('/orders', { body: bigger })).status).toBe(422)
  })
})

describe('the response while the handler runs', () => {
  it('finishes for the handler, once, and closes', async () => {
    const heard: string[] = []
    const app = newApp().use(express5.json())
    app.post(
      '/orders',
      idempotent(orders(), async (_req: Request, res: Res) => {
        await Promise.resolve()
        res.on('finish', () => heard.push('finish')).on('close', () => heard.push('close'))
        res.end('made')
        await finished(res)
        heard.push('finished')
      }),
    )
    await listen(app)
    expect(await (await post()).text()).toBe('made')
    await new Promise(resolve => setTimeout(resolve, 30))
    expect(heard).toEqual(['finish', 'close', 'finished'])
  })

  it('does not tell the handler of a client that left, also where an outer logger listens already', async () => {
    const gate = door()
    const heard: string[] = []
    const app = newApp().use(express5.json())
    app.use((_req, res, next) => {
      onFinished(res, () => heard.push('outer'))
      next()
    })
    app.post(
      '/orders',
      idempotent(orders(), async (_req: Request, res: Res) => {
        onFinished(res, () => heard.push('inner'))
        await gate.pass()
        heard.push('working')
        res.send('made')
      }),
    )
    await listen(app)
    const leaving = new AbortController()
    const left = post('/orders', { signal: leaving.signal }).catch(() => 'left')
    await gate.reached
    leaving.abort()
    expect(await left).toBe('left')
    await eventually(() => heard.includes('outer'))
    gate.open()
    await eventually(() => heard.includes('inner'))
    expect(heard).toEqual(['outer', 'working', 'inner'])
    expect(await (await post()).text()).toBe('made')
  })
})

it('keeps the answer of a guarded handler that throws after it has answered', async () => {
  let runs = 0
  const app = newApp().use(express5.json())
  app.post(
    '/orders',
    idempotent(orders(), async (_req: Request, res: Res) => {
      runs += 1
      res.status(201).send('made')
      throw new Error('too late')
    }),
  )
  await listen(app)
  expect([await (await post()).text(), await (await post()).text(), runs]).toEqual(['made', 'made', 1])
})

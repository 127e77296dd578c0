import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono, type Context } from 'hono'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLatchkey, json, type HttpOptions, type Latchkey } from '../../src/index.ts'
import { idempotent as onExpress, statusOf as onExpressStatus } from '../../src/http/express/index.ts'
import { statusOf as onFastifyStatus } from '../../src/http/fastify/index.ts'
import { statusOf as onFetchStatus } from '../../src/http/fetch/index.ts'
import { idempotent, statusOf } from '../../src/http/hono/index.ts'
import { statusOf as onKoaStatus } from '../../src/http/koa/index.ts'
import { StatusOf } from '../../src/http/nest/index.ts'
import type { Store } from '../../src/ports/store.ts'
import { openPlace, type Place } from '../processes/database.ts'
import Database from 'libsql'
import { engine } from '../../src/engine/internal.ts'

const hour = 3_600_000
const directory = mkdtempSync(join(tmpdir(), 'latchkey-status-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let place: Place
let path: string
let files = 0
let mayReplay: unknown
let latchkey: Latchkey<unknown, Context>
let app: Hono

function serve(http: HttpOptions = {}, over: Partial<Store> = {}): void {
  const scope = (c: Context) => (c.req.header('x-tenant') ?? 'acme,a/b').split(',')
  latchkey = createLatchkey<unknown, Context>({ store: { ...place.store, ...over }, scope, http })
  app = new Hono()
  const options = {
    deadlineMs: hour,
    onExpiry: 'gone',
    // What JavaScript may return.
    authorizeReplay: () => mayReplay as boolean,
    outcomeBytesMax: 200,
  } as const
  const report = latchkey.deferred('exports.create', options, async (x, { bytes = 5 }: { bytes?: number }) => {
    await x.phase('collect', () => undefined)
    return json(201, 'x'.repeat(bytes), [
      ['Link', '<a>; rel=a'],
      ['Link', '<b>; rel=b'],
    ])
  })
  app.post('/exports', idempotent(report, { input: (c: Context) => c.req.json() }))
  const order = latchkey.guarded('orders.create', { onFailure: 'rerun' })
  app.post(
    '/orders',
    idempotent(order, (c: Context) => c.json({}, 201)),
  )
  app.get('/operations/:id', statusOf(latchkey))
  app.get('/accounts/:account/operations/:id/status', statusOf(latchkey))
  app.get('/mine', statusOf(latchkey, { id: c => c.req.query('id') }))
}

beforeEach(async () => {
  path = join(directory, `${(files += 1)}.db`)
  place = await openPlace(path)
  await place.migrate()
  mayReplay = true
  serve()
})

afterEach(async () => {
  await latchkey.close()
  await place.close()
})

async function post(to: string, body: unknown = {}): Promise<{ response: Response; id: string }> {
  const headers = { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' }
  const response = await app.request(to, { method: 'POST', headers, body: JSON.stringify(body) })
  const operation = to === '/orders' ? 'orders.create' : 'exports.create'
  return { response, id: latchkey.identify({ scope: ['acme', 'a/b'], operation, key: 'k' }) }
}

async function work(): Promise<void> {
  for (const row of await place.store.resumable({ limit: 10 })) {
    await latchkey[engine].phased.get(row.identity.operation)?.[engine].resume(row)
  }
}

const get = (at: string, tenant?: string) =>
  app.request(at, tenant === undefined ? {} : { headers: { 'x-tenant': tenant } })

async function told(response: Response | Promise<Response>): Promise<Record<string, unknown>> {
  return (await (await response).json()) as Record<string, unknown> // every answer here is an object
}

async function traces(response: Response): Promise<unknown> {
  return [response.status, [...response.headers], await response.text()]
}

describe('the status resource', () => {
  it('finds the id in the path, wherever it stands, in either case, or where it is told to look', async () => {
    const { id } = await post('/exports')
    const account = '00000000-0000-4000-8000-000000000001'
    for (const at of [
      `/operations/${id}`,
      `/operations/${id.toUpperCase()}`,
      `/accounts/${account}/operations/${id}/status`,
      `/mine?id=${id}`,
    ]) {
      const response = await get(at)
      expect([at, response.status, (await told(response))['id']]).toEqual([at, 200, id])
    }
  })

  it('is not there for another tenant, a kind that has none, a caller whose rights were withdrawn, or nothing', async () => {
    const { id } = await post('/exports')
    const { id: guarded } = await post('/orders')
    const absent = await traces(await get('/operations/00000000-0000-4000-8000-000000000000'))
    expect(absent).toMatchObject([404, expect.anything(), expect.stringContaining('no-such-operation')])
    for (const [at, tenant] of [
      [`/operations/${id}`, 'evil'],
      [`/operations/${guarded}`],
      ['/operations/x'],
      ['/mine'],
    ] as const) {
      expect(await traces(await get(at, tenant))).toEqual(absent)
    }
    for (mayReplay of [false, undefined, null, 'yes', 1]) {
      expect(await traces(await get(`/operations/${id}`))).toEqual(absent)
      expect((await post('/exports')).response.status).toBe(403)
    }
    mayReplay = true
    expect((await get(`/operations/${id}`)).status).toBe(200)
  })

  it("answers its problems in the application's own shape", async () => {
    serve({ renderProblem: ({ code, status }) => ({ body: { error: { code, status } } }) })
    const response = await app.request('/operations/none')
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: { code: 'no-such-operation', status: 404 } },
    ])
  })

  it('tells scopes apart that read alike', async () => {
    const { id } = await post('/exports')
    for (const tenant of ['acme/a,b', 'acme/a/b', 'acme,a%2Fb', 'acme/a%2Fb', 'acme,a/b,']) {
      expect([tenant, (await get(`/operations/${id}`, tenant)).status]).toEqual([
        tenant,
        // An empty part is not a scope.
        tenant.endsWith(',') ? 500 : 404,
      ])
    }
  })

  it('shows the outcome with its headers joined, and says when its body was too large', async () => {
    const { id } = await post('/exports', { bytes: 300 })
    await work()
    const { outcome } = await told(get(`/operations/${id}`))
    expect(outcome).toEqual({ status: 201, headers: {}, body: null, encoding: 'not-stored' })
    await latchkey.forget({ id }, { by: 'a test', reason: 'another body' })
    await post('/exports')
    await work()
    expect((await told(get(`/operations/${id}`)))['outcome']).toEqual({
      status: 201,
      headers: { 'content-type': 'application/json', link: '<a>; rel=a, <b>; rel=b' },
      body: 'xxxxx',
    })
  })

  it('is 410 while a tombstone is kept, to its own tenant only, and the retry is too', async () => {
    const { id } = await post('/exports')
    await work()
    const database = new Database(path)
    database.prepare('UPDATE latchkey_keys SET expires_at_ms = created_at_ms').run()
    database.close()
    for (const reaped of [false, true]) {
      if (reaped) expect(await place.store.reap({ limit: 10 })).toBe(1)
      const gone = await get(`/operations/${id}`)
      expect([gone.status, (await told(gone))['type']]).toEqual([410, 'urn:latchkey:problem:key-expired'])
      expect((await get(`/operations/${id}`, 'evil')).status).toBe(404)
      expect((await post('/exports')).response.status).toBe(410)
    }
  })

  it('is 503 when the store is down, whatever is asked for', async () => {
    const { id } = await post('/exports')
    await latchkey.close()
    serve({}, { read: () => Promise.reject(new Error('connection refused')) })
    const down = await get(`/operations/${id}`)
    expect([down.status, down.headers.get('Retry-After')]).toEqual([503, '1'])
  })

  it('stands where http.statusPath says', async () => {
    await latchkey.close()
    serve({ statusPath: id => `https://shop.test/v1/work/${id}` })
    const { id, response } = await post('/exports')
    expect(response.headers.get('Location')).toBe(`https://shop.test/v1/work/${id}`)
    expect((await told(response))['status_url']).toBe(`https://shop.test/v1/work/${id}`)
  })

  it.each(
    Object.entries({ statusOf, onFetchStatus, onExpressStatus, onKoaStatus, onFastifyStatus, StatusOf }) as [
      string,
      (host: unknown) => unknown,
    ][],
  )('is refused by %s when it is declared on something else', (_, declare) => {
    expect(() => declare(undefined)).toThrow('statusOf needs a Latchkey: statusOf(latchkey)')
    expect(() => declare({})).toThrow('statusOf needs a Latchkey: statusOf(latchkey)')
    const http = { statusPath: () => '/operations' }
    const wrong = createLatchkey({ store: place.store, scope: () => 'acme', http })
    expect(() => declare(wrong)).toThrow('http.statusPath must return')
    expect(() => onExpress(wrong.guarded('orders.create', { onFailure: 'hold' }))).toThrow(
      'http.statusPath must return',
    )
  })
})

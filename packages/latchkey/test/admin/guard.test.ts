import { describe, expect, it } from 'vitest'
import { adminRoutes } from '../../src/admin/index.ts'
import { createLatchkey } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { authorize, host, openApi } from './api.ts'

const credentials = {
  cookie: { cookie: 'session=bea' },
  basic: { authorization: `Basic ${Buffer.from('bea:secret').toString('base64')}` },
  bearer: { authorization: 'Bearer bea' },
} as const

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY'] as const
const harmless: readonly string[] = ['GET', 'HEAD']

/** Where a request says that it comes from, and whether a browser's credentials may come with it. */
const origins: readonly (readonly [headers: Readonly<Record<string, string>>, mayWrite: boolean])[] = [
  [{ 'sec-fetch-site': 'same-origin' }, true],
  [{ 'sec-fetch-site': 'same-origin', origin: `https://${host}` }, true],
  [{ 'sec-fetch-site': 'cross-site' }, false],
  [{ 'sec-fetch-site': 'cross-site', origin: `https://${host}` }, false],
  [{ 'sec-fetch-site': 'same-site' }, false],
  [{ 'sec-fetch-site': 'none' }, false],
  [{ 'sec-fetch-site': '' }, false],
  [{ origin: `http://${host}` }, true],
  [{ origin: `https://${host}` }, true],
  [{ origin: `http://${host}:8081` }, false],
  [{ origin: `http://${host}.evil.example` }, false],
  [{ origin: 'https://evil.example' }, false],
  [{ origin: 'null' }, false],
  [{}, false],
]

describe.each(Object.entries(credentials))('a request with %s credentials', (auth, credential) => {
  const isBearer = auth === 'bearer'

  it.each(methods)(
    '%s passes from the same origin only, unless it changes nothing or a token came with it',
    async method => {
      const { send } = await openApi()
      for (const [headers, mayWrite] of origins) {
        const { authorization: _none, ...bare } = { authorization: '', ...headers }
        const { status, body } = await sendAs(send, method, { ...credential, ...bare })
        const passes = harmless.includes(method) || isBearer || mayWrite
        const where = `${method} with ${auth} from ${JSON.stringify(headers)}`
        if (passes) expect(body?.code, where).not.toBe('cross-site')
        else expect([status, body?.code], where).toEqual([403, 'cross-site'])
      }
    },
  )

  it.each(methods)('%s is refused under every name but those of the list', async method => {
    const { send } = await openApi()
    for (const name of ['evil.example', `${host}:8081`, `${host}.`, `x.${host}`, '127.0.0.1', 'localhost', '']) {
      const headers = { ...credential, 'sec-fetch-site': 'same-origin', host: name }
      const { status } = await sendAs(send, method, headers)
      expect(status, `${method} with Host ${name}`).toBe(421)
    }
    const { status } = await sendAs(send, method, {
      ...credential,
      'sec-fetch-site': 'same-origin',
      host: host.toUpperCase(),
    })
    expect(status).not.toBe(421)
  })

  it.each(methods.filter(method => !harmless.includes(method)))(
    '%s is refused with what a form can send',
    async method => {
      const { send } = await openApi()
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'text/json',
        'application/jsonx',
        '',
      ]) {
        const headers = { ...credential, 'sec-fetch-site': 'same-origin', 'content-type': type }
        expect((await sendAs(send, method, headers)).status, `${method} of ${type}`).toBe(415)
      }
      const json = { ...credential, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json; charset=utf-8' }
      expect((await sendAs(send, method, json)).status).not.toBe(415)
    },
  )
})

type Send = Awaited<ReturnType<typeof openApi>>['send']

/** The given credentials and no other. */
function sendAs(send: Send, method: string, headers: Readonly<Record<string, string>>): ReturnType<Send> {
  return send('keys/lookup', { method, body: { reference: 'ch_1' }, headers: { authorization: '', ...headers } })
}

it('answers nobody, on any route, and acts for nobody', async () => {
  const { send, id } = await openApi()
  for (const path of ['session', 'work', `keys/${id}`, 'audit.ndjson', 'nothing', '']) {
    expect((await send(path, { who: 'stranger' })).body.code, path).toBe('not-authenticated')
    expect((await send(path, { who: 'stranger', method: 'POST', body: {} })).body.code, path).toBe('not-authenticated')
  }
})

it('lets nobody in whom authorize could not judge', async () => {
  const { send } = await openApi({ authorize: () => Promise.reject(new Error('the session store is away')) })
  expect(await send('session')).toMatchObject({ status: 500, body: { code: 'failed' } })
  // Of an application without types.
  const nameless = await openApi({ authorize: () => ({ role: 'approver' }) as never })
  expect((await nameless.send('session')).status).toBe(500)
})

it('protects every answer by its headers, also one that refuses', async () => {
  const { send } = await openApi()
  for (const { headers } of [
    await send('session'),
    await send('session', { who: 'stranger' }),
    await send('session', { headers: { host: 'evil.example' } }),
  ]) {
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self';")
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  }
})

it.each([
  ['authorize', { hosts: [host] }],
  ['hosts', { authorize }],
  ['hosts', { authorize, hosts: [] }],
  ['hosts', { authorize, hosts: ['*'] }],
  ['hosts', { authorize, hosts: ['https://ops.example.com'] }],
  ['latchkey', { authorize, hosts: [host], latchkey: undefined }],
])('is not built without %s', (what, given) => {
  const latchkey = createLatchkey({ store: memoryStore(), scope: () => 'acme', maintenance: false })
  // Of an application without types.
  expect(() => adminRoutes({ latchkey, ...given } as never)).toThrow(new RegExp(what, 'i'))
})

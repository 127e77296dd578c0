import { Buffer } from 'node:buffer'
import { adminRoutes } from 'latchkey/admin'
import { createLatchkey } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { describe, expect, it } from 'vitest'

const host = 'ops.example.com'
const files = new Map([
  ['index.html', { bytes: Buffer.from('<title>Latchkey</title>'), type: 'text/html; charset=utf-8' }],
  ['assets/page.js', { bytes: Buffer.from('export {}'), type: 'text/javascript; charset=utf-8' }],
])
const latchkey = createLatchkey({ store: memoryStore(), scope: () => 'acme', maintenance: false })
const routes = adminRoutes({
  latchkey,
  hosts: [host],
  authorize: ({ headers }) => (headers.has('cookie') ? { name: 'ann', role: 'viewer' } : null),
  console: { read: path => files.get(path) },
})
const get = (path: string, headers: Readonly<Record<string, string>> = { cookie: 'session=ann' }) =>
  routes(new Request(`https://${host}${path}`, { headers: { host, ...headers } }))

describe('the console beside its API', () => {
  it('sends the page with a policy that lets no other script run', async () => {
    for (const path of ['/', '/ops/latchkey/', '/assets/page.js']) {
      const { status, headers } = await get(path)
      const policy = headers.get('content-security-policy') ?? ''
      expect([status, policy.split('; ')], path).toEqual([
        200,
        [
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "img-src 'self' data:",
          "frame-ancestors 'none'",
          "base-uri 'none'",
          "form-action 'none'",
        ],
      ])
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  it('keeps assets in the cache of one person, and the page in none', async () => {
    expect((await get('/ops/')).headers.get('cache-control')).toBe('no-store')
    expect((await get('/ops/assets/page.js')).headers.get('cache-control')).toMatch(/^private, .*immutable$/)
  })

  it('sends a browser to the slash of its mount by a relative address, never to another site', async () => {
    for (const [path, location] of [
      ['/ops', './ops/'],
      ['/ops/latchkey?x=1', './latchkey/?x=1'],
      ['//evil.example', './evil.example/'],
      ['/https:evil.example', './https:evil.example/'],
    ] as const)
      expect([(await get(path)).status, (await get(path)).headers.get('location')]).toEqual([307, location])
  })

  it('is not there for nobody, nor under another name', async () => {
    for (const path of ['/', '/assets/page.js', '/ops']) {
      expect((await get(path, {})).status).toBe(401)
      expect((await get(path, { cookie: 'session=ann', host: 'evil.example' })).status).toBe(421)
    }
  })
})

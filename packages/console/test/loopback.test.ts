import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loopbackConsole } from '../src/index.ts'
import { openShop, type Shop } from './world/shop.ts'

const page = { bytes: Buffer.from('<title>Latchkey</title>'), type: 'text/html' }

describe('the console for one person at this machine', () => {
  const directory = mkdtempSync(`${tmpdir()}/latchkey-loopback-`)
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(directory)
  })
  afterAll(async () => {
    await shop.close()
    rmSync(directory, { recursive: true, force: true })
  })

  function open(port = 8081) {
    const name = `127.0.0.1:${port}`
    const { handler, query } = loopbackConsole({
      latchkey: shop.latchkey,
      person: { name: 'you', role: 'approver' },
      host: () => name,
      files: { read: path => (path === 'index.html' ? page : undefined) },
    })
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      handler(new Request(`http://${name}/console/${path}`, { headers: { host: name, ...headers } }))
    return { get, query }
  }

  it('lets one browser in by its link, and no second one', async () => {
    const { get, query } = open()
    const first = await get(query)
    expect([first.status, first.headers.get('location')]).toEqual([303, './'])
    const cookie = first.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict; Max-Age=28800$/)
    expect((await get(query)).status).toBe(401)
    const session = { cookie: cookie.split(';')[0] ?? '' }
    expect(await (await get('', session)).text()).toContain('Latchkey')
    expect(await (await get('api/v1/session', session)).json()).toMatchObject({ name: 'you' })
  })

  it('lets nobody in without the link, whatever they make up', async () => {
    const { get } = open()
    for (const path of ['', '?token=', `?token=${'A'.repeat(43)}`, 'assets/x.js', 'api/v1/session'])
      expect((await get(path)).status, path).toBe(401)
    for (const cookie of ['latchkey_console_8081=', `latchkey_console_8081=${'A'.repeat(43)}`])
      expect((await get('', { cookie })).status, cookie).toBe(401)
    expect(await (await get('')).text()).toContain('Open the link that was printed')
  })

  it('leaves the session of another console on this machine alone', async () => {
    const jar = new Map<string, string>()
    const consoles = [open(8081), open(8082)]
    for (const { get, query } of consoles) {
      const [name = '', value = ''] = (await get(query)).headers.get('set-cookie')?.split(/[=;]/) ?? []
      jar.set(name, value)
    }
    // A browser sends all cookies of the machine to each of its ports.
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    for (const { get } of consoles) expect((await get('api/v1/session', { cookie })).status).toBe(200)
  })

  it('is closed to other names of this machine, also with the cookie', async () => {
    const { get, query } = open()
    const cookie = (await get(query)).headers.get('set-cookie')?.split(';')[0] ?? ''
    expect((await get('api/v1/session', { cookie, host: 'evil.example' })).status).toBe(421)
  })
})

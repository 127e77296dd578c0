import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Overview, Session } from 'latchkey/admin'
import { type SqliteStore, sqliteStore } from 'latchkey/stores/sqlite'
import { build } from 'vite'
import { useProgram } from './program.ts'
import { openShop } from './shop.ts'

describe('latchkey console', () => {
  const program = useProgram()
  const running: ChildProcess[] = []
  let store: SqliteStore

  beforeAll(async () => {
    store = sqliteStore({ path: join(program.folder, 'shop.db'), open: file => new Database(file) })
    await store.migrate()
    await openShop(store).unknownPayment('seen in the console')
    await build({
      configFile: fileURLToPath(new URL('../../console/vite.config.ts', import.meta.url)),
      build: { outDir: join(program.folder, 'program/page') },
    })
  })
  afterEach(() => running.splice(0).forEach(child => child.kill('SIGKILL')))
  afterAll(() => store.close())

  /** Runs until its link is printed. */
  async function start(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
    const { PATH = '' } = process.env
    const child = spawn(process.execPath, [program.file, 'console', '--store', 'sqlite:./shop.db', ...args], {
      cwd: program.folder,
      env: { PATH, HOME: program.folder, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    running.push(child)
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk: Buffer) => void (said[name] += chunk.toString()))
    await expect.poll(() => said.stdout, { message: said.stderr }).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=\S+\n/)
    const link = new URL(said.stdout.split('\n')[0] ?? '')
    return { child, said, link, ended: once(child, 'close') as Promise<[number | null]> }
  }

  const get = (url: string | URL, headers: Record<string, string> = {}) => fetch(url, { headers, redirect: 'manual' })

  async function signIn(link: URL): Promise<string> {
    const answer = await get(link)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, './'])
    return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  }

  it('shows the store to the one browser that opens the link first, and to no other', async () => {
    const { link, said } = await start(['--profile', 'staging'], { LATCHKEY_CONFIG: staging() })
    expect(said.stderr).toMatch(/^straight to .*shop\.db, as os:/)
    expect((await get(new URL('/', link))).status).toBe(401)
    const cookie = await signIn(link)
    expect((await get(link)).status).toBe(401)

    const page = await get(new URL('/', link), { cookie })
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(await page.text())?.[1] ?? 'no script'
    expect((await get(new URL(`/${script}`, link), { cookie })).status).toBe(200)
    const read = async (path: string): Promise<unknown> =>
      (await get(new URL(`/api/v1/${path}`, link), { cookie })).json()
    expect((await read('session')) as Session).toMatchObject({
      name: expect.stringMatching(/^os:.+@/),
      environment: 'staging',
    })
    expect((await read('overview')) as Overview).toMatchObject({ unknown: { count: 1 } })
  })

  it('is closed to other names of this machine, and listens on loopback only', async () => {
    const { link } = await start()
    const cookie = await signIn(link)
    const path = '/api/v1/session'
    // fetch sets Host itself.
    const asked = request({ host: '127.0.0.1', port: link.port, path, headers: { host: 'evil.example', cookie } }).end()
    const [answer] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
    answer.resume()
    expect(answer.statusCode).toBe(421)
    expect(link.hostname).toBe('127.0.0.1')
    await expect(get(`http://127.0.0.2:${link.port}${path}`)).rejects.toThrow('fetch failed')
  })

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'ends with 130 on %s, also while a browser keeps its connection',
    async signal => {
      const { child, link, said, ended } = await start()
      await signIn(link)
      child.kill(signal)
      expect((await ended)[0]).toBe(130)
      expect(said.stderr).toContain('ended')
      await expect(get(link)).rejects.toThrow('fetch failed')
    },
  )

  it('hands the link to the browser with --open, and goes on where there is none', async () => {
    const bin = join(program.folder, 'bin')
    mkdirSync(bin)
    for (const name of ['xdg-open', 'open']) {
      writeFileSync(join(bin, name), `#!/bin/sh\nprintf %s "$1" > "${program.folder}/opened"\n`)
      chmodSync(join(bin, name), 0o755)
    }
    const { link } = await start(['--open'], { PATH: `${bin}:/bin:/usr/bin` })
    await expect.poll(() => readFileSync(join(program.folder, 'opened'), 'utf8')).toBe(link.href)

    const alone = await start(['--open'], { PATH: join(program.folder, 'nowhere') })
    await expect.poll(() => alone.said.stderr).toContain('no browser could be opened')
    await signIn(alone.link)
  })

  it('listens where it is told, and says so where it cannot', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const run = () => program.run(['console', '--store', 'sqlite:./shop.db', '--port', String(port)])
    expect(await run()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(`port ${port}`) })
    other.close()
    await once(other, 'close')
    expect((await start(['--port', String(port)])).link.port).toBe(String(port))
  })

  it.each([
    ['a server', ['--server', 'https://ops.example.com/latchkey'], 'open the page of that server'],
    ['a pretence', ['--dry-run'], 'cannot pretend'],
    ['a port that is none', ['--port', '70000'], 'at most 65535'],
  ])('refuses %s', async (_what, args, text) => {
    const { code, stdout, stderr } = await program.run(['console', '--store', 'sqlite:./shop.db', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(text)
  })

  /** A profile names the environment, which the page shows beside its name. */
  function staging(): string {
    program.write('staging.json', '{ "profiles": { "staging": {} } }')
    return join(program.folder, 'staging.json')
  }
})

describe('latchkey console without its page', () => {
  const program = useProgram()

  it('says where the page should be', async () => {
    program.write('empty.db', '')
    const { code, stderr } = await program.run(['console', '--store', 'sqlite:./empty.db'])
    expect(code).toBe(1)
    expect(stderr).toContain('the page is not beside this program')
  })
})

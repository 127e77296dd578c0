import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packPackages } from '../tools/pack/pack-packages.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

describe('the packed command line, in an empty folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-packed-program-'))
  const app = join(folder, 'app')

  beforeAll(async () => {
    const packed = await packPackages(root, folder)
    const tarball = packed.find(({ name }) => name === '@latchkey/cli')?.tarball ?? ''
    mkdirSync(app)
    writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true }')
    await run('npm', ['install', tarball, '--no-audit', '--no-fund', '--offline'], { cwd: app })
  }, 300_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const latchkey = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const { PATH = '' } = process.env
    const options = { cwd: app, env: { PATH, HOME: folder, ...env } }
    return run(join(app, 'node_modules/.bin/latchkey'), args, options).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      // What execFile rejects with has these.
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
  }

  it('brings nothing with it', () => {
    expect(readdirSync(join(app, 'node_modules')).filter(name => !name.startsWith('.'))).toEqual(['@latchkey'])
    expect(readdirSync(join(app, 'node_modules/@latchkey'))).toEqual(['cli'])
  })

  it('runs', async () => {
    expect(await latchkey(['--version'])).toMatchObject({ code: 0, stdout: '0.1.0\n' })
  })

  it.each([
    ['postgres://127.0.0.1/shop', /driver of PostgreSQL is missing: run npm i pg/],
    ['redis://127.0.0.1', /driver of Redis is missing: run npm i ioredis/],
  ])('says which driver is missing for %s', async (url, message) => {
    const { code, stderr } = await latchkey(['doctor'], { DATABASE_URL: url })
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })

  it('needs nothing but the driver', async () => {
    symlinkSync(join(root, 'node_modules/libsql'), join(app, 'node_modules/libsql'))
    const env = { DATABASE_URL: 'sqlite:./app.db' }
    expect((await latchkey(['migrate'], env)).code).toBe(0)
    expect((await latchkey(['migrate', 'status'], env)).code).toBe(0)
    expect((await latchkey(['doctor'], env)).stdout).toMatch(/^ok {4}schema/m)
  })

  it('serves the page that was packed beside it', async () => {
    const { PATH = '' } = process.env
    const child = spawn(join(app, 'node_modules/.bin/latchkey'), ['console', '--store', 'sqlite:./app.db'], {
      cwd: app,
      env: { PATH, HOME: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [link] = (await once(child.stdout, 'data')) as [Buffer]
      const signedIn = await fetch(link.toString().trim(), { redirect: 'manual' })
      const headers = { cookie: signedIn.headers.get('set-cookie')?.split(';')[0] ?? '' }
      const { origin } = new URL(link.toString())
      const page = await (await fetch(origin, { headers })).text()
      expect(page).toContain('<title>Latchkey</title>')
      const files = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, path = '']) => path)
      expect(files.length).toBeGreaterThanOrEqual(2)
      for (const path of files) expect((await fetch(`${origin}/${path}`, { headers })).status, path).toBe(200)
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('carries the licences of what is in it', async () => {
    const { stdout } = await run('tail', ['-n', '80', join(app, 'node_modules/@latchkey/cli/dist/bin.js')])
    for (const name of ['commander', 'structured-headers']) {
      expect(stdout).toMatch(new RegExp(`/\\*\n${name}\n[\\s\\S]*Permission is hereby granted`))
    }
  })
})

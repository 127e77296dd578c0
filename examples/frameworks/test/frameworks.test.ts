import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const programs = {
  express: new URL('../src/express.ts', import.meta.url),
  fastify: new URL('../src/fastify.ts', import.meta.url),
  fetch: new URL('../src/fetch.ts', import.meta.url),
  hono: new URL('../src/hono.ts', import.meta.url),
  koa: new URL('../src/koa.ts', import.meta.url),
}

/** Started as a reader would, in an empty folder; the port is the kernel's choice. */
async function start(program: URL, folder: string): Promise<{ child: ChildProcess; port: number }> {
  const args = ['--import', import.meta.resolve('tsx'), '--conditions=latchkey-source', fileURLToPath(program)]
  const child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, PORT: '0' } })
  let printed = ''
  child.stderr.on('data', (chunk: Buffer) => (printed += chunk))
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', code => reject(new Error(`${program} ended with ${code} before it listened: ${printed}`)))
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk
      const found = /port: (\d+)/.exec(printed)?.[1]
      if (found !== undefined) resolve(Number(found))
    })
  })
  return { child, port }
}

describe.each(Object.entries(programs))('the example on %s', (_, program) => {
  let folder: string
  let child: ChildProcess | undefined
  let port = 0
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'latchkey-example-'))
    ;({ child, port } = await start(program, folder))
  }, 30_000)
  afterAll(async () => {
    if (child?.exitCode === null) {
      const ended = new Promise(resolve => child?.once('exit', resolve))
      child.kill()
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  })

  const post = async (key: string, body: unknown, account = 'acme') => {
    const response = await fetch(`http://127.0.0.1:${port}/orders`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, 'X-Account': account },
      body: JSON.stringify(body),
    })
    return {
      status: response.status,
      text: await response.text(),
      replayed: response.headers.get('Idempotent-Replayed'),
    }
  }
  const orders = () => {
    const database = new Database(join(folder, 'shop.db'))
    const rows = database.prepare('select sku from orders order by id').all() as { sku: string }[]
    database.close()
    return rows.map(({ sku }) => sku)
  }

  it('makes one order of two requests, and gives both the same answer', async () => {
    const first = await post('order-1', { sku: 'tea' })
    expect(first).toEqual({ status: 201, text: '{"id":1,"sku":"tea"}', replayed: null })
    expect(await post('order-1', { sku: 'tea' })).toEqual({ ...first, replayed: 'true' })
    expect(orders()).toEqual(['tea'])
  })

  it('refuses another order under the same key, and takes it from another account', async () => {
    await post('order-2', { sku: 'tea' })
    expect(await post('order-2', { sku: 'coffee' })).toMatchObject({ status: 422 })
    expect(await post('order-2', { sku: 'coffee' }, 'globex')).toMatchObject({ status: 201, replayed: null })
    expect(orders()).toEqual(['tea', 'tea', 'coffee'])
  })
})

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { forkProgram } from '../../../../test/programs/program.ts'

const children: ChildProcess[] = []
afterEach(async () => {
  for (const child of children.splice(0)) {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
})

async function start(adapter: string, ...rest: string[]): Promise<number> {
  const child = await forkProgram(new URL('./large-body-app.ts', import.meta.url), [adapter, ...rest])
  children.push(child)
  const [message]: unknown[] = await once(child, 'message')
  return (message as { port: number }).port // the only message that the application sends
}

async function maxRssMiB(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  return ((await response.json()) as { maxRssKiB: number }).maxRssKiB / 1024
}

const pieceBytes = 1_048_576
const pieces = 256
const head = (...fields: string[]) =>
  ['POST /orders HTTP/1.1', 'host: shop', 'idempotency-key: k', 'content-type: application/octet-stream', ...fields]
    .map(line => `${line}\r\n`)
    .join('') + '\r\n'

/** Sends all of it, whatever the server answers, unless the server closes the connection. Returns the beginning of the response. */
async function upload(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const answer = firstBytes(socket)
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  const frame = [Buffer.from(`${pieceBytes.toString(16)}\r\n`), Buffer.alloc(pieceBytes), Buffer.from('\r\n')]
  const piece = Buffer.concat(frame)
  socket.write(head('transfer-encoding: chunked'))
  for (let sent = 0; sent < pieces && !socket.destroyed; sent++) {
    if (socket.write(piece)) continue
    await Promise.race([new Promise<void>(resolve => socket.once('drain', () => resolve())), closed])
  }
  if (!socket.destroyed) socket.write('0\r\n\r\n')
  const text = await answer
  socket.destroy()
  return text
}

function firstBytes(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', data => resolve(String(data)))
    // After its response the server may do so.
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('closed without an answer')))
  })
}

const adapters = ['hono', 'fetch', 'express', 'koa', 'fastify']

describe('a body of 256 MiB that nobody wants', () => {
  it.each(adapters)('is 413 and costs no memory on %s', async adapter => {
    const port = await start(adapter)
    const before = await maxRssMiB(port)
    expect(await upload(port)).toMatch(/^HTTP\/1\.1 413 .*\r\n/)
    // A server that held it would need more than twice this much.
    expect((await maxRssMiB(port)) - before).toBeLessThan(120)
  })

  it.each(adapters)('is 413 before it has come on %s, where its length is said', async adapter => {
    const port = await start(adapter, 'unread')
    const socket = connect(port, '127.0.0.1')
    const answer = firstBytes(socket)
    socket.write(head(`content-length: ${pieces * pieceBytes}`))
    expect(await answer).toMatch(/^HTTP\/1\.1 413 .*\r\n/)
    socket.destroy()
  })
})

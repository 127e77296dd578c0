/** Local servers that fail in the ways networks do. Loopback only, on ports the kernel chooses. */
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { Worker } from 'node:worker_threads'

const pem = (name: string) => readFileSync(new URL(`tls/self-signed-${name}.pem`, import.meta.url))
export const testCertificate: { readonly key: Buffer; readonly cert: Buffer } = { key: pem('key'), cert: pem('cert') }

export type Closing = () => Promise<unknown> | void

export async function listen(server: net.Server): Promise<number> {
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** A port that was free a moment ago. */
export async function closedPort(): Promise<number> {
  const server = net.createServer()
  const port = await listen(server)
  await new Promise(resolve => {
    server.close(resolve)
  })
  return port
}

/** What a POST with a body failed with; an answer is a failure of the test. */
export function failureOf(
  options: https.RequestOptions & { tls?: boolean; autoSelectFamily?: boolean },
): Promise<Error> {
  return new Promise((resolve, reject) => {
    const { tls = false, ...rest } = options
    const request = (tls ? https : http).request({ host: '127.0.0.1', method: 'POST', ...rest }, response => {
      response.on('error', resolve).on('end', () => reject(new Error(`answered ${response.statusCode}`)))
      response.resume()
    })
    request.on('error', resolve)
    request.on('timeout', () => request.destroy(Object.assign(new Error('read timeout'), { code: 'ETIMEDOUT' })))
    request.end('amount=100')
  })
}

export async function fetchFailure(url: string, init: RequestInit = {}): Promise<unknown> {
  try {
    const response = await fetch(url, { method: 'POST', body: 'amount=100', ...init })
    await response.text()
  } catch (error) {
    return error
  }
  throw new Error('the request was answered')
}

/**
 * A port whose accept queue is full, so that the next SYN gets no answer. The listener lives in a thread that sleeps,
 * because one in this thread would accept.
 */
export async function silentPort(): Promise<{ port: number; close: Closing }> {
  const worker = new Worker(
    `const server = require('node:net').createServer()
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       require('node:worker_threads').parentPort.postMessage(server.address().port)
       setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 20)
     })`,
    { eval: true },
  )
  const port = await new Promise<number>(resolve => {
    worker.once('message', resolve)
  })
  await pause(300)
  const sockets: net.Socket[] = []
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await worker.terminate()
  }
  const queueMax = 50
  for (let tries = 0; tries < queueMax; tries++) {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {})
    sockets.push(socket)
    const connected = new Promise(resolve => {
      socket.once('connect', () => resolve(true))
    })
    if (!(await Promise.race([connected, pause(700).then(() => false)]))) return { port, close }
  }
  await close()
  throw new Error('the accept queue never filled up')
}

/** Between a client and a TLS server; spoils what comes back once `armed` says so. */
export function spoilingProxy(upstream: number, armed: () => boolean): net.Server {
  return net.createServer(client => {
    const server = net.connect(upstream, '127.0.0.1')
    client.on('error', () => server.destroy()).pipe(server)
    server.on('error', () => client.destroy()).on('end', () => client.end())
    server.on('data', data => {
      if (armed()) data[data.length - 1] = (data[data.length - 1] ?? 0) ^ 0xff
      client.write(data)
    })
  })
}

export function pause(delayMs: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, delayMs)
  })
}

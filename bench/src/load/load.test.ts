import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { statusOfWhole } from './answer.ts'
import { runLoad } from './load.ts'
import { requestWriter } from './request.ts'

const servers: ReturnType<typeof createServer>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise(resolve => server.close(resolve))
})

async function listening(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

it('waits for the whole answer, with a length or in chunks', () => {
  const status = (text: string) => statusOfWhole(Buffer.from(text))
  expect(status('HTTP/1.1 201 Created\r\nContent-Le')).toBeUndefined()
  expect(status('HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nabcd')).toBeUndefined()
  expect(status('HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nabcde')).toBe(201)
  expect(status('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n')).toBeUndefined()
  expect(status('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n')).toBe(200)
  expect(status('HTTP/1.1 409 Conflict\r\n\r\n')).toBe(409)
})

it('never repeats a new key, and stays inside the replayed ones', () => {
  const keyOf = (text: string) => /idempotency-key: (\S+)/.exec(text)?.[1] ?? ''
  const keys = (write: (n: number) => string) => new Set(Array.from({ length: 5_000 }, (_, n) => keyOf(write(n))))
  expect(keys(requestWriter({ kind: 'new', prefix: 'a-' })).size).toBe(5_000)
  expect(requestWriter({ kind: 'new', prefix: 'a-' }, 'acme')(0)).toContain('\r\nx-tenant: acme\r\n')
  const replayed = keys(requestWriter({ kind: 'replayed', prefix: 'b-', count: 10 }))
  expect([...replayed].toSorted()).toEqual(Array.from({ length: 10 }, (_, n) => `b-${n}`))
})

it('knows every acknowledged key, and counts what was refused by its status', async () => {
  const seen: string[] = []
  const port = await listening((request, response) => {
    request.resume()
    seen.push(String(request.headers['idempotency-key']))
    response.statusCode = seen.length % 10 === 0 ? 503 : 201
    response.end('{"ok":true}')
  })
  const result = await runLoad({
    port,
    connections: 4,
    seconds: 30,
    keys: { kind: 'new', prefix: 'k-' },
    requestsMax: 100,
  })
  expect(seen).toHaveLength(100)
  expect(new Set(seen).size).toBe(100)
  expect(result).toMatchObject({ acknowledged: 90, refused: { 503: 10 } })
  expect(result.p50Ms).toBeGreaterThan(0)
  expect(result.p95Ms).toBeGreaterThanOrEqual(result.p50Ms)
  expect(result.p99Ms).toBeGreaterThanOrEqual(result.p95Ms)
})

it('reports the average apart from the percentiles', async () => {
  let answered = 0
  const port = await listening((request, response) => {
    request.resume()
    // One answer in ten is slow: the average lies between the usual answer and the slow one.
    setTimeout(() => response.end('{"ok":true}'), ++answered % 10 === 0 ? 200 : 0)
  })
  const keys = { kind: 'new', prefix: 'k-' } as const
  const { averageMs, p95Ms } = await runLoad({ port, connections: 1, seconds: 30, keys, requestsMax: 20 })
  expect(p95Ms).toBeGreaterThanOrEqual(199)
  expect(averageMs).toBeGreaterThanOrEqual(19.9)
  expect(averageMs).toBeLessThan(p95Ms)
})

it('paces a connection, and counts the wait of a request that was due before the answer to the one ahead came', async () => {
  let answered = 0
  const port = await listening((request, response) => {
    request.resume()
    setTimeout(() => response.end('{"ok":true}'), ++answered === 1 ? 300 : 0)
  })
  const load = { port, connections: 1, seconds: 30, perSecond: 10, requestsMax: 4 }
  const startedAt = performance.now()
  const { p50Ms, p99Ms } = await runLoad({ ...load, keys: { kind: 'new', prefix: 'k-' } })
  // Due at 0, 100, 200 and 300 ms, and the first answer takes 300: the second has waited for 200, the third for 100.
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(299)
  expect(p99Ms).toBeGreaterThanOrEqual(299)
  expect(p50Ms).toBeGreaterThanOrEqual(199)
})

it('fails when the server hangs up', async () => {
  const port = await listening(request => void request.socket.destroy())
  const load = runLoad({ port, connections: 1, seconds: 5, keys: { kind: 'new', prefix: 'k-' } })
  await expect(load).rejects.toThrow('closed the connection')
})

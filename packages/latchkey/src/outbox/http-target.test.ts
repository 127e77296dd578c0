import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { systemClock } from '../ports/clock.ts'
import type { Message } from '../ports/outbox.ts'
import { errorCode } from './attempts.ts'
import { httpTarget, type HttpTargetOptions } from './http-target.ts'
import { webhookKey, webhookSignature } from './webhook-signature.ts'

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly method: string | undefined
  readonly body: string
}

const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const running: Server[] = []
afterEach(() => {
  for (const server of running.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function receiver(answer: (response: ServerResponse) => void): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ headers: request.headers, method: request.method, body: Buffer.concat(chunks).toString() })
      answer(response)
    })
  })
  running.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received }
}

function message(over: Partial<Message> = {}): Message {
  return {
    ...{ position: '1', lane: 0, topic: 'orders', aggregate: 'a', dedupId: 'msg-1', headers: {}, attempts: 0 },
    ...{ payload: Buffer.from('{"n":1}'), crashes: 0, createdAtMs: 0, ...over },
  }
}

const { signal } = new AbortController()

async function answered(answer: (response: ServerResponse) => void, options: Partial<HttpTargetOptions> = {}) {
  const { url } = await receiver(answer)
  return httpTarget({ url, ...options }).deliver(message(), { signal })
}

it('posts the payload with its dedup id as key and webhook id, and a signature that can be checked', async () => {
  const { url, received } = await receiver(response => response.end())
  const clock = { ...systemClock, nowMs: () => 1_700_000_000_999 }
  const target = httpTarget({ url, secret, clock, headers: { authorization: 'Bearer x' } })
  const sent = message({ dedupId: 'a"\\b', headers: { traceparent: '00-1', authorization: 'mine', host: 'elsewhere' } })
  expect(await target.deliver(sent, { signal })).toEqual({ kind: 'delivered' })
  const [{ headers, method, body } = fail()] = received
  expect([method, body]).toEqual(['POST', '{"n":1}'])
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'idempotency-key': '"a\\"\\\\b"',
    'webhook-id': 'a"\\b',
    'webhook-timestamp': '1700000000',
    traceparent: '00-1',
    authorization: 'Bearer x',
  })
  expect(headers.host).toBe(new URL(url).host)
  const signed = { id: 'a"\\b', timestamp: 1_700_000_000, body: Buffer.from(body) }
  expect(headers['webhook-signature']).toBe(webhookSignature([webhookKey(secret)], signed))
})

it('sends no signature without a secret, not even a message’s own', async () => {
  const { url, received } = await receiver(response => response.end())
  const forged = message({ headers: { 'webhook-signature': 'v1,forged' } })
  await httpTarget({ url }).deliver(forged, { signal })
  expect(received[0]?.headers['webhook-signature']).toBeUndefined()
})

it('takes the downstream id from the answer, or from its Location', async () => {
  const json = (value: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(value))
  expect(await answered(json({ id: 'evt_1' }))).toEqual({ kind: 'delivered', downstreamId: 'evt_1' })
  expect(await answered(json({ id: 7 }))).toEqual({ kind: 'delivered', downstreamId: '7' })
  const located = (response: ServerResponse) => void response.writeHead(201, { location: '/events/2' }).end('created')
  expect(await answered(located)).toEqual({ kind: 'delivered', downstreamId: '/events/2' })
  const long = (response: ServerResponse) => void response.end(JSON.stringify({ id: 'x', filler: 'y'.repeat(100_000) }))
  expect(await answered(long)).toEqual({ kind: 'delivered' })
})

it.each([400, 401, 404, 409, 410, 422])('calls %i a refusal for good', async status => {
  expect(await answered(response => response.writeHead(status).end())).toEqual({
    kind: 'refused',
    error: `HTTP ${status}`,
  })
})

it.each([301, 307, 408, 425, 429, 500, 502, 503])('calls %i a failure to be tried again', async status => {
  const redirecting = (response: ServerResponse) => void response.writeHead(status, { location: '/elsewhere' }).end()
  expect(await answered(redirecting)).toEqual({ kind: 'failed', error: `HTTP ${status}` })
})

it('passes on how long the downstream asks to be left alone, within an hour', async () => {
  const after = (value: string) => (response: ServerResponse) =>
    void response.writeHead(503, { 'retry-after': value }).end()
  expect(await answered(after('7'))).toMatchObject({ kind: 'failed', retryAfterMs: 7_000 })
  expect(await answered(after('999999'))).toMatchObject({ retryAfterMs: 3_600_000 })
  expect(await answered(after('soon'))).not.toHaveProperty('retryAfterMs')
  const inAMinute = new Date(Date.now() + 60_000).toUTCString()
  const dated = await answered(after(inAMinute))
  expect(dated.kind === 'failed' && dated.retryAfterMs).toBeGreaterThan(30_000)
})

it('fails when nobody listens, when the answer takes too long and when it breaks off', async () => {
  const reason = (failure: Promise<unknown>) => failure.then(() => 'delivered', errorCode)
  const { url } = await receiver(() => {})
  await new Promise(resolve => running.pop()?.close(resolve))
  expect(await reason(httpTarget({ url }).deliver(message(), { signal }))).toBe('ECONNREFUSED')
  expect(await reason(answered(() => {}, { timeoutMs: 50 }))).toBe('TimeoutError')
  const broken = (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"id":', () => response.destroy())
  }
  expect(await reason(answered(broken))).not.toBe('delivered')
})

it('ends its request when the relay gives up', async () => {
  const { url, received } = await receiver(() => {})
  const over = new AbortController()
  const delivery = httpTarget({ url }).deliver(message(), { signal: over.signal })
  const rejected = expect(delivery).rejects.toThrow()
  await expect.poll(() => received.length).toBe(1)
  over.abort()
  await rejected
})

it('refuses what no header can hold', async () => {
  const target = httpTarget({ url: 'http://127.0.0.1:1/' })
  expect(await target.deliver(message({ dedupId: 'caf\u00e9' }), { signal })).toMatchObject({ kind: 'refused' })
  expect(await target.deliver(message({ headers: { 'a b': 'c' } }), { signal })).toMatchObject({ kind: 'refused' })
  expect(await target.deliver(message({ headers: { a: 'b\r\nc: d' } }), { signal })).toMatchObject({ kind: 'refused' })
})

it('refuses a wrong configuration at construction', () => {
  const wrong: HttpTargetOptions[] = [
    { url: 'nowhere' },
    { url: 'ftp://127.0.0.1/' },
    { url: 'http://user:pass@127.0.0.1/' },
    { url: 'http://127.0.0.1/', secret: 'whsec_x' },
    { url: 'http://127.0.0.1/', timeoutMs: 0 },
  ]
  for (const options of wrong) {
    expect(() => httpTarget(options)).toThrow(expect.objectContaining({ code: 'misconfigured' }))
  }
})

function fail(): never {
  throw new Error('nothing was received')
}

/** Responses that stream on HTTP/2. */
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { type Capture, type CaptureEnd, captureResponse } from '../capture.ts'
import { readChunks } from './chunk-reader.ts'

type Handler = (req: Http2ServerRequest, res: Http2ServerResponse) => unknown

const open: (Http2Server | ClientHttp2Session)[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.close()
})

/** A request to a handler whose response is captured. `after`: default is to release it. */
async function ask(
  handle: Handler,
  after = (capture: Capture, _: CaptureEnd): void => capture.release([]),
): Promise<ClientHttp2Stream> {
  const server = createServer((req, res) => {
    const capture = captureResponse(res as never, req as never, 1_000) // the compatibility classes fit by shape, overloads aside
    void handle(req, res)
    void capture.ended.then(end => after(capture, end))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) // a TCP server's address
  open.push(client, server)
  return client.request({ ':path': '/' })
}

const block = Buffer.alloc(65_536, 'x')

describe('a response that streams on HTTP/2', () => {
  it.each([false, true])('is sent while its handler writes it, all but its end (length said: %s)', async isDeclared => {
    const ends: CaptureEnd[] = []
    let release = () => {}
    const stream = await ask(
      async (_, res) => {
        res.writeHead(201, { 'x-a': '1', ...(isDeclared ? { 'content-length': '6000' } : {}) })
        for (let at = 0; at < 3; at++) {
          res.write('x'.repeat(2_000))
          await pause(10)
        }
        res.end()
      },
      (capture, end) => {
        ends.push(end)
        release = () => capture.release([])
      },
    )
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>] // Node's event
    expect([headers[':status'], headers['x-a']]).toEqual([201, '1'])
    let received = 0
    let hasEnded = false
    stream.on('data', (data: Buffer) => (received += data.length)).on('end', () => (hasEnded = true))
    await expect.poll(() => ends).toMatchObject([{ kind: 'whole', response: { status: 201, body: undefined } }])
    await pause(30)
    expect([received, hasEnded]).toEqual([isDeclared ? 4_000 : 6_000, false])
    release()
    await once(stream, 'close')
    expect([received, hasEnded]).toEqual([6_000, true])
  })

  it('is reset with an error when another answer should take its place', async () => {
    const stream = await ask(
      async (_, res) => {
        res.write('x'.repeat(2_000))
        await pause(20)
        res.end()
      },
      capture => capture.replace({ status: 409, headers: [], body: new Uint8Array() }),
    )
    stream.resume()
    await expect(once(stream, 'close')).rejects.toThrow(/NGHTTP2_INTERNAL_ERROR/)
  })

  it('makes its handler wait for the client, and lets it finish when the client has left', async () => {
    const ends: CaptureEnd[] = []
    let written = 0
    async function* blocks() {
      for (; written < 100_000_000; written += block.length) yield block
    }
    const stream = await ask(
      (_, res) => pipeline(Readable.from(blocks()), res, () => {}),
      (capture, end) => {
        ends.push(end)
        capture.release([])
      },
    )
    await once(stream, 'response')
    await pause(300)
    const seen = written
    expect(seen).toBeLessThan(20_000_000)
    await pause(100)
    expect(written).toBe(seen)
    stream.close(constants.NGHTTP2_CANCEL)
    await expect.poll(() => ends, { timeout: 20_000 }).toMatchObject([{ kind: 'whole' }])
    expect(written).toBeGreaterThanOrEqual(100_000_000)
  })

  it('shows the disconnect to the handler of a stream of events', async () => {
    const heard: string[] = []
    const ends: CaptureEnd[] = []
    const stream = await ask(
      (req, res) => {
        req.on('close', () => heard.push('request'))
        res.on('close', () => heard.push('response'))
        res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
        res.write('data: 1\n\n')
      },
      (_, end) => ends.push(end),
    )
    const [data] = (await once(stream, 'data')) as [Buffer] // Node's event
    expect([data.toString(), heard]).toEqual(['data: 1\n\n', []])
    stream.close()
    await expect.poll(() => heard.toSorted()).toEqual(['request', 'response'])
    expect(ends).toEqual([{ kind: 'left', status: 200 }])
  })
})

describe('the framing of chunks', () => {
  const chunked = Buffer.from('5\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nx-sum: 1\r\n\r\n')

  it.each([1, 2, 3, 7, 1_000])('is removed from pieces of %i bytes', size => {
    const read = readChunks()
    const parts: Uint8Array[] = []
    for (let at = 0; at < chunked.length; at += size) parts.push(...read(chunked.subarray(at, at + size)))
    expect(Buffer.concat(parts).toString()).toBe('helloabcdefghijklmnopqrstuvwxyz')
  })
})

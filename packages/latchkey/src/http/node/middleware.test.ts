/** Real middleware around a capture and inside of one. */
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { gunzipSync } from 'node:zlib'
import express from 'express'
import helmet from 'helmet'
import { describe, expect, it } from 'vitest'
import { listenOn } from '../../../test/http/node-app.ts'
import { type CaptureEnd, captureResponse } from './capture.ts'

type Middleware = (req: IncomingMessage, res: ServerResponse, next: () => void) => void

const load = createRequire(import.meta.url)
// Packages without types of their own.
const morgan = load('morgan') as (format: string, options: { stream: { write(line: string): void } }) => Middleware
const session = load('express-session') as (options: object) => Middleware
const responseTime = load('response-time') as () => Middleware
const onFinished = load('on-finished') as (message: object, listener: (error: unknown) => void) => void
const compressions = [
  ['compression 1.7', load('compression17') as () => Middleware],
  ['compression 1.8', load('compression') as () => Middleware],
] as const

interface Stack {
  readonly outside?: Middleware
  readonly inside?: Middleware
  readonly handle: (req: IncomingMessage, res: ServerResponse) => unknown
}

interface Result {
  readonly status: number | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
  readonly stored: CaptureEnd
}

const pass: Middleware = (_req, _res, next) => next()

/** What the client gets, and what is stored. The release waits for longer than a turn of the event loop, as a store does. */
async function run({ outside = pass, inside = pass, handle }: Stack): Promise<Result> {
  let stored: CaptureEnd | undefined
  const app = express()
  app.use(outside)
  app.use((req, res, next) => {
    const capture = captureResponse(res, req)
    next()
    void capture.ended.then(end => {
      stored = end
      setTimeout(() => capture.release([]), 10)
    })
  })
  app.use(inside)
  app.use((req, res) => void handle(req, res))
  const server = await listenOn(app)
  try {
    const headers = { 'Accept-Encoding': 'gzip' }
    const [incoming] = (await once(request(server.url, { agent: false, headers }).end(), 'response')) as [
      IncomingMessage,
    ] // Node's event
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer) // no encoding is set
    const bytes = Buffer.concat(chunks)
    const body = incoming.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
    if (stored === undefined) throw new Error('the capture has not ended')
    return { status: incoming.statusCode, headers: incoming.headers, body: body.toString(), stored }
  } finally {
    await server.close()
  }
}

const text = 'tea '.repeat(1_000)
const sendText = (_: IncomingMessage, res: ServerResponse) => res.setHeader('Content-Type', 'text/plain').end(text)
const sendParts = (_: IncomingMessage, res: ServerResponse) => {
  res.setHeader('Content-Type', 'text/plain')
  res.write(text.slice(0, 1_500))
  setTimeout(() => {
    res.write(text.slice(1_500, 3_000))
    res.end(text.slice(3_000))
  }, 5)
}

function storedBody({ stored }: Result): string {
  if (stored.kind !== 'whole') throw new Error(`stored as ${stored.kind}`)
  const { headers, body = new Uint8Array() } = stored.response
  const isPacked = headers.some(([name, value]) => name.toLowerCase() === 'content-encoding' && value === 'gzip')
  return (isPacked ? gunzipSync(body) : Buffer.from(body)).toString()
}

function storedNames({ stored }: Result): string[] {
  return stored.kind === 'whole' ? stored.response.headers.map(([name]) => name.toLowerCase()) : []
}

describe.each(compressions)('%s', (_, compression) => {
  it.each([
    ['one write', sendText],
    ['several', sendParts],
  ])('outside packs the answer for its client, and what is stored is not packed: %s', async (_, handle) => {
    const result = await run({ outside: compression(), handle })
    expect([result.headers['content-encoding'], result.body]).toEqual(['gzip', text])
    expect([storedNames(result), storedBody(result)]).toEqual([['content-type'], text])
  })

  it.each([
    ['one write', sendText],
    ['several', sendParts],
  ])('inside packs what is stored and sent: %s', async (_, handle) => {
    const result = await run({ inside: compression(), handle })
    expect([result.headers['content-encoding'], result.body, storedBody(result)]).toEqual(['gzip', text, text])
  })

  it.each(['outside', 'inside'] as const)('%s lets the handler wait for drain', async place => {
    const block = 'x'.repeat(20_000)
    const result = await run({
      [place]: compression(),
      async handle(_req: IncomingMessage, res: ServerResponse) {
        res.setHeader('Content-Type', 'text/plain')
        for (let written = 0; written < 8; written++) if (!res.write(block)) await once(res, 'drain')
        res.end()
      },
    })
    expect([result.body.length, storedBody(result).length]).toEqual([160_000, 160_000])
  })
})

describe('logs', () => {
  it.each(['outside', 'inside'] as const)('morgan %s writes one line with the status and the length', async place => {
    const lines: string[] = []
    const log = morgan(':method :status :res[content-length]', { stream: { write: line => void lines.push(line) } })
    const result = await run({
      [place]: log,
      handle: (_, res) => res.writeHead(201, { 'Content-Length': '3' }).end('tea'),
    })
    expect([result.status, result.body]).toEqual([201, 'tea'])
    await expect.poll(() => lines).toEqual([place === 'inside' ? 'GET 201 3\n' : expect.stringMatching(/^GET 201 /)])
  })

  it('on-finished reports the end to listeners outside and inside once each, inside first', async () => {
    const heard: string[] = []
    await run({
      outside(req, res, next) {
        onFinished(res, error => heard.push(`outside ${String(error)}`))
        onFinished(req, () => {})
        next()
      },
      inside(_, res, next) {
        onFinished(res, error => heard.push(`inside ${String(error)}`))
        next()
      },
      handle: sendText,
    })
    await expect.poll(() => heard).toEqual(['inside null', 'outside null'])
  })
})

describe('headers', () => {
  it('helmet inside is stored, helmet outside is sent and not stored', async () => {
    const inside = await run({ inside: helmet(), handle: sendText })
    expect([inside.headers['x-frame-options'], storedNames(inside)]).toEqual([
      'SAMEORIGIN',
      expect.arrayContaining(['x-frame-options']),
    ])
    const outside = await run({ outside: helmet(), handle: sendText })
    expect([outside.headers['x-frame-options'], storedNames(outside)]).toEqual(['SAMEORIGIN', ['content-type']])
  })

  it('response-time inside is stored, response-time outside is sent and not stored', async () => {
    const inside = await run({ inside: responseTime(), handle: sendText })
    expect([inside.headers['x-response-time'], storedNames(inside)]).toEqual([
      expect.stringContaining('ms'),
      expect.arrayContaining(['x-response-time']),
    ])
    const outside = await run({ outside: responseTime(), handle: sendText })
    expect([outside.headers['x-response-time'], storedNames(outside)]).toEqual([
      expect.stringContaining('ms'),
      ['content-type'],
    ])
  })

  it.each(['outside', 'inside'] as const)('express-session %s saves the session and sets its cookie', async place => {
    const result = await run({
      [place]: session({ secret: 's', resave: false, saveUninitialized: true }),
      handle: sendText,
    })
    expect(result.body).toBe(text)
    expect(result.headers['set-cookie']).toEqual([expect.stringContaining('connect.sid=')])
  })
})

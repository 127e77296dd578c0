/** Conformance replies on Node's own response, and the smallest adapter there can be on it, written with the adapter kit. */
import { createReadStream } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import type { AppSpec, HandlerReply, RouteSpec, RunningApp } from '@latchkey/conformance'
import { exchange, type HeldAnswer, holdAnswer, nodeView, sendAnswer } from '../../src/http/adapter/index.ts'

type Head = Extract<HandlerReply, { headers: unknown }>

function head(res: ServerResponse, { status, headers }: Pick<Head, 'status' | 'headers'>): void {
  res.statusCode = status
  for (const [name, value] of headers) res.appendHeader(name, value)
}

/** Sends a reply with Node's own calls. The thrown kinds are the caller's. */
export function sendReply(res: ServerResponse, reply: Exclude<HandlerReply, { kind: 'throw' | 'crash' }>): void {
  switch (reply.kind) {
    case 'redirect':
      return void res.writeHead(reply.status, { Location: reply.location }).end()
    case 'answer':
      head(res, reply)
      if (reply.asText === true) return void res.end(Buffer.from(reply.body).toString())
      return void (reply.body.byteLength === 0 ? res.end() : res.end(reply.body))
    case 'stream':
      head(res, reply)
      return void pipeline(Readable.from(chunksOf(reply)), res, () => {})
    case 'pipe':
      head(res, reply)
      return void Readable.from(pieces(reply.body)).pipe(res)
    case 'source':
      head(res, reply)
      return void pipeline(Readable.from(reply.source), res, () => {})
    case 'file':
      head(res, reply)
      return void createReadStream(reply.path).pipe(res)
    case 'early-hints':
      res.writeEarlyHints({ link: reply.link })
      return void reply.proceed.then(() => {
        head(res, reply)
        res.end(reply.body)
      })
    case 'trailers':
      head(res, reply)
      res.setHeader('Trailer', Object.keys(reply.trailers).join(', '))
      res.write(reply.body)
      res.addTrailers(reply.trailers)
      return void res.end()
  }
}

async function* chunksOf({ chunks, breaks }: Extract<HandlerReply, { kind: 'stream' }>): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    await new Promise(resolve => setImmediate(resolve))
    yield chunk
  }
  if (breaks) throw new Error('upstream went away')
}

function* pieces(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.byteLength; at += 10_000) yield body.subarray(at, at + 10_000)
}

export async function readAll(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer) // no encoding is set, so chunks are bytes
  return Buffer.concat(chunks)
}

export function listenOn(listener: RequestListener): Promise<RunningApp> {
  const server = createServer(listener)
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo // a TCP server's address
      const close = () =>
        new Promise<void>(closed => {
          server.close(() => closed())
          server.closeAllConnections()
        })
      resolve({ url: `http://127.0.0.1:${port}`, close })
    })
  })
}

export function nodeApp({ routes, outerHeaders }: AppSpec): RequestListener {
  return (req, res) => {
    for (const [name, value] of outerHeaders) res.setHeader(name, value)
    const route = routes.find(one => matches(one, req))
    if (route === undefined) return void res.writeHead(404).end()
    serve(route, req, res).catch(() => res.destroy())
  }
}

async function serve(route: RouteSpec, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const bytes = await readAll(req)
  const body: unknown = bytes.length === 0 ? undefined : JSON.parse(bytes.toString())
  let held: HeldAnswer | undefined
  let thrown: unknown
  const run = async (execution: Parameters<RouteSpec['run']>[0]['execution']) => {
    const reply = await route.run({ execution, body })
    if (reply.kind !== 'throw' && reply.kind !== 'crash') return sendReply(res, reply)
    thrown = reply.kind === 'crash' ? reply.error : new Error(reply.message)
    res.writeHead(reply.kind === 'throw' ? reply.status : 500, { 'Content-Type': 'text/plain' }).end('failed')
  }
  const result = await exchange(
    route.operation,
    nodeView(req, req, async () => ({ kind: 'bytes', bytes })),
    async execution => {
      held = holdAnswer(res, req, { operation: route.operation })
      await run(execution)
      return held.attempt(await held.ended, thrown)
    },
  )
  if (result.kind === 'pass') return run(undefined)
  if (held !== undefined) return held.conclude(result)
  if (result.kind === 'send') sendAnswer(res, result.answer)
}

function matches({ method, path }: RouteSpec, req: IncomingMessage): boolean {
  const pattern = new RegExp(`^${path.replaceAll(/:[a-z]+/g, '[^/]+')}$`)
  return req.method === method && pattern.test((req.url ?? '').split('?', 1)[0] ?? '')
}

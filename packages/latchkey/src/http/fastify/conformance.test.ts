import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { describe, it } from 'vitest'
import { handlerNeeds } from '../../../test/http/node-needs.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import {
  type AdapterHarness,
  AppError,
  type HandlerReply,
  type RouteSpec,
  runAdapterCases,
} from '@latchkey/conformance'
import { executionOf, idempotent, latchkeyFastify, statusOf } from './index.ts'

type Form = (app: FastifyInstance, route: RouteSpec) => void

const asHandler: Form = (app, { method, path, operation, run }) => {
  const handler = idempotent(operation, async (request: FastifyRequest, reply: FastifyReply, execution) =>
    answer(reply, await run({ execution, body: request.body })),
  )
  app.route({ method, url: path, handler })
}

const asMiddleware: Form = (app, { method, path, operation, run }) => {
  app.route({
    method,
    url: path,
    preHandler: idempotent(operation),
    handler: async (request, reply) =>
      answer(reply, await run({ execution: executionOf(request), body: request.body })),
  })
}

const harness = (name: string, form: Form): AdapterHarness => ({
  name,
  provides: new Set(handlerNeeds),
  ...adapterStores,
  // The context of this adapter is Fastify's request.
  headerOf: (context, name) => [(context as FastifyRequest).headers[name.toLowerCase()]].flat()[0],
  bodyOf: context => (context as FastifyRequest).body,
  async start({ routes, phased, status, outerHeaders }) {
    const app = fastify({ forceCloseConnections: true })
    await app.register(latchkeyFastify)
    app.setErrorHandler((error, _request, reply) =>
      error instanceof AppError ? reply.code(error.renderAs).send(error.message) : reply.send(error),
    )
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.addHook('onRequest', async (_request, reply) => {
      for (const [name, value] of outerHeaders) reply.header(name, value)
    })
    for (const route of routes) form(app, route)
    for (const { method, path, operation, input } of phased) {
      const handler = idempotent(operation, { input: async (request: FastifyRequest) => input(request.body) })
      app.route({ method, url: path, handler })
    }
    if (status !== undefined) app.get(status.path, statusOf(status.latchkey))
    return { url: await app.listen({ host: '127.0.0.1', port: 0 }), close: () => app.close() }
  },
})

/** The reply in Fastify's own calls. */
async function answer(reply: FastifyReply, one: HandlerReply): Promise<FastifyReply> {
  if (one.kind === 'throw') throw Object.assign(new Error(one.message), { statusCode: one.status })
  if (one.kind === 'crash') throw one.error
  if (one.kind === 'redirect') return reply.redirect(one.location, one.status)
  if (one.kind === 'early-hints') {
    reply.writeEarlyHints({ link: one.link })
    await one.proceed
  }
  reply.code(one.status)
  for (const [name, value] of one.headers) add(reply, name, value)
  switch (one.kind) {
    case 'stream':
      return reply.send(Readable.from(chunksOf(one.chunks, one.breaks)))
    case 'pipe':
      return reply.send(Readable.from(slices(one.body)))
    case 'source':
      return reply.send(Readable.from(one.source))
    case 'file':
      return reply.send(createReadStream(one.path))
    case 'trailers':
      for (const [name, value] of Object.entries(one.trailers))
        reply.trailer(name, (_reply, _payload, done) => done(null, value))
      return reply.send(Buffer.from(one.body))
    case 'answer':
      if (one.asText === true) return reply.send(Buffer.from(one.body).toString())
      return one.body.byteLength === 0 ? reply.send() : reply.send(Buffer.from(one.body))
    default:
      return one.body.byteLength === 0 ? reply.send() : reply.send(Buffer.from(one.body))
  }
}

/** Fastify replaces a header that is set again, except Set-Cookie. */
function add(reply: FastifyReply, name: string, value: string): void {
  const known = name.toLowerCase() === 'set-cookie' ? undefined : reply.getHeader(name)
  reply.header(name, known === undefined ? value : [known, value].flat())
}

async function* chunksOf(chunks: readonly Uint8Array[], breaks: boolean): AsyncGenerator<Buffer> {
  for (const chunk of chunks) {
    yield Buffer.from(chunk)
    await new Promise(resolve => setImmediate(resolve))
  }
  if (breaks) throw new Error('the source failed')
}

function* slices(body: Uint8Array): Generator<Buffer> {
  for (let at = 0; at < body.byteLength; at += 65_536) yield Buffer.from(body.subarray(at, at + 65_536))
}

describe('Fastify adapter', () => runAdapterCases(harness('Fastify', asHandler), it))
describe('Fastify adapter as middleware', () => runAdapterCases(harness('Fastify as middleware', asMiddleware), it))

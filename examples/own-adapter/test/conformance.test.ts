import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { H3, type H3Event, HTTPError, readBody, serve } from 'h3'
import {
  type AdapterHarness,
  AppError,
  type AppSpec,
  type HandlerReply,
  type RouteSpec,
  type RunningApp,
  runAdapterCases,
  type TransactionalHarness,
} from '@latchkey/conformance'
import { memoryStore } from 'latchkey/stores/memory'
import { type SqliteTx, sqliteStore } from 'latchkey/stores/sqlite'
import Database from 'libsql'
import { describe, it } from 'vitest'
import { executionOf, idempotent, statusOf } from '../src/h3.ts'

type Form = (app: H3, route: RouteSpec) => void

const asHandler: Form = (app, { method, path, operation, run }) => {
  const handler = idempotent(operation, async (event, execution) =>
    valueOf(event, await run({ execution, body: await readBody(event) })),
  )
  app.on(method, path, handler)
}

const asMiddleware: Form = (app, { method, path, operation, run }) => {
  const handler = async (event: H3Event) =>
    valueOf(event, await run({ execution: executionOf(event), body: await readBody(event) }))
  app.on(method, path, handler, { middleware: [idempotent(operation)] })
}

function harness(name: string, form: Form): AdapterHarness {
  return {
    name,
    provides: new Set([
      'body',
      'stream',
      'broken-stream',
      'source',
      'transactional',
      'phased',
      'deferred',
      'error-handler',
    ]),
    headerOf: (context, header) => (context as H3Event).req.headers.get(header) ?? undefined, // what the adapter gives to scope
    bodyOf: context => (context as H3Event).req.clone().json(),
    start: app => start(app, form),
    memoryStore,
    transactional,
  }
}

async function start({ outerHeaders, routes, phased, status }: AppSpec, form: Form): Promise<RunningApp> {
  const app = new H3({
    silent: true,
    onError: ({ cause }) =>
      cause instanceof AppError ? new Response(cause.message, { status: cause.renderAs }) : undefined,
  })
  app.use(event => {
    for (const [header, value] of outerHeaders) event.res.headers.append(header, value)
  })
  for (const route of routes) form(app, route)
  for (const { method, path, operation, input } of phased) {
    app.on(method, path, idempotent(operation, { input: async (event: H3Event) => input(await readBody(event)) }))
  }
  if (status !== undefined) app.get(status.path, statusOf(status.latchkey))
  const server = serve(app, { port: 0, hostname: '127.0.0.1', silent: true, gracefulShutdown: false })
  await server.ready()
  return { url: (server.url ?? '').replace(/\/$/, ''), close: () => server.close(true) }
}

/** The reply in h3's own terms. */
function valueOf(event: H3Event, reply: HandlerReply): unknown {
  switch (reply.kind) {
    case 'throw':
      throw new HTTPError({ status: reply.status, message: reply.message })
    case 'crash':
      throw reply.error
    case 'redirect':
      return new Response(null, { status: reply.status, headers: { Location: reply.location } })
    case 'answer':
    case 'stream':
    case 'source':
      event.res.status = reply.status
      for (const [name, value] of reply.headers) event.res.headers.append(name, value)
      if (reply.kind === 'stream') return streamOf(reply)
      if (reply.kind === 'source') return pulledFrom(reply.source)
      if (reply.asText === true) return Buffer.from(reply.body).toString()
      return reply.body.byteLength === 0 ? undefined : reply.body
    default:
      throw new Error(`h3 does not provide ${reply.kind}`)
  }
}

function streamOf({ chunks, breaks }: Extract<HandlerReply, { kind: 'stream' }>): ReadableStream<Uint8Array> {
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      await new Promise(resolve => setImmediate(resolve))
      const chunk = chunks[sent++]
      if (chunk !== undefined) controller.enqueue(chunk)
      else if (breaks) controller.error(new Error('the source failed'))
      else controller.close()
    },
  })
}

function pulledFrom(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    cancel: () => void iterator.return?.(),
  })
}

async function transactional(): Promise<TransactionalHarness> {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-h3-'))
  const path = join(directory, 'data.db')
  const store = sqliteStore({ path, open: file => new Database(file), waitMs: 20_000, transactionMs: 20_000 })
  await store.migrate()
  const reader = new Database(path)
  await store.exclusive(() => reader.exec('create table orders (value text not null) strict'))
  return {
    store,
    // The store above is SQLite, so its transactions are.
    insert: async (tx, value) => void (tx as SqliteTx).run('insert into orders values (?)', [value]),
    values: async () =>
      reader
        .prepare('select value from orders order by rowid')
        .all()
        .map(row => String((row as { value: unknown }).value)), // the only column
    async close() {
      reader.close()
      await store.close()
      await rm(directory, { recursive: true })
    },
  }
}

describe('h3 as a handler', () => runAdapterCases(harness('h3 handler', asHandler), it))
describe('h3 as middleware', () => runAdapterCases(harness('h3 middleware', asMiddleware), it))

import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import Koa, { type Context } from 'koa'
import { describe, it } from 'vitest'
import { handlerNeeds } from '../../../test/http/node-needs.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import {
  type AdapterHarness,
  AppError,
  type AppSpec,
  type HandlerReply,
  type RouteSpec,
  runAdapterCases,
} from '@latchkey/conformance'
import type { Execution } from '../../engine/execution.ts'
import { unreachable } from '../../ports/errors.ts'
import { captureBody, executionOf, idempotent, statusOf } from './index.ts'

interface Variant {
  readonly form: 'handler' | 'middleware'
  /** `rawBody`: as @koa/bodyparser leaves it. `none`: only the parsed body is left. */
  readonly raw: 'captureBody' | 'rawBody' | 'none'
  /** Errors are rendered by the app's own outermost middleware instead of Koa. */
  readonly rendersErrors: boolean
}

function harness(name: string, variant: Variant): AdapterHarness {
  return {
    name,
    provides: new Set(handlerNeeds),
    headerOf: (context, header) => (context as Context).get(header), // what the adapter hands to scope
    bodyOf: context => Reflect.get((context as Context).request, 'body'), // what the parser below sets
    start: app => start(app, variant),
    ...adapterStores,
  }
}

async function start({ outerHeaders, routes, phased, status }: AppSpec, { form, raw, rendersErrors }: Variant) {
  const app = new Koa()
  app.silent = true
  app.use(rendersErrors ? renderErrors : renderOwnErrors)
  app.use(async (ctx, next) => {
    for (const [header, value] of outerHeaders) ctx.append(header, value)
    await next()
  })
  if (raw === 'captureBody') app.use(captureBody())
  app.use(parser(raw === 'rawBody'))
  for (const route of routes) {
    const [outer, inner] = middlewares(route, form)
    const covered = outer
    app.use((ctx, next) => (matches(route, ctx) ? covered(ctx, inner === undefined ? next : () => inner(ctx)) : next()))
  }
  for (const route of phased) {
    const covered = idempotent(route.operation, { input: async (ctx: Context) => route.input(bodyOf(ctx)) })
    app.use((ctx, next) => (matches(route, ctx) ? covered(ctx, next) : next()))
  }
  if (status !== undefined) {
    const told = statusOf(status.latchkey)
    app.use((ctx, next) => (matches({ method: 'GET', path: status.path }, ctx) ? told(ctx, next) : next()))
  }
  const serve = app.callback()
  const server = createServer((req, res) => void serve(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on TCP
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

async function renderOwnErrors(ctx: Context, next: () => Promise<unknown>): Promise<void> {
  try {
    await next()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    ctx.status = error.renderAs
    ctx.body = error.message
  }
}

async function renderErrors(ctx: Context, next: () => Promise<unknown>): Promise<void> {
  try {
    await renderOwnErrors(ctx, next)
  } catch (error) {
    const { status = 500, message } = error as { status?: number; message: string } // only errors are thrown here
    ctx.status = status
    ctx.body = { rendered: message }
  }
}

function parser(keepsRaw: boolean) {
  return async (ctx: Context, next: () => Promise<unknown>) => {
    const bytes = await buffer(ctx.req)
    const isJson = ctx.is('json') === 'json'
    Reflect.set(ctx.request, 'body', isJson ? JSON.parse(bytes.toString()) : bytes)
    if (keepsRaw && isJson) Reflect.set(ctx.request, 'rawBody', bytes.toString())
    await next()
  }
}

function matches({ method, path }: Pick<RouteSpec, 'method' | 'path'>, ctx: Context): boolean {
  return ctx.method === method && new RegExp(`^${path.replaceAll(/:[a-z]+/g, '[^/]+')}$`).test(ctx.path)
}

function bodyOf(ctx: Context): unknown {
  return ctx.get('content-length') === '' ? undefined : Reflect.get(ctx.request, 'body')
}

type Covered = (ctx: Context, next: () => Promise<unknown>) => Promise<unknown>

function middlewares(route: RouteSpec, form: Variant['form']): [Covered, ((ctx: Context) => Promise<void>)?] {
  const run = async (ctx: Context, execution: Execution | undefined) => {
    await reply(ctx, await route.run({ execution, body: bodyOf(ctx) }))
  }
  if (form === 'handler') return [idempotent(route.operation, run)]
  return [idempotent(route.operation), ctx => run(ctx, executionOf(ctx))]
}

async function reply(ctx: Context, made: HandlerReply): Promise<void> {
  if ('headers' in made) {
    ctx.status = made.status
    for (const [header, value] of made.headers) ctx.append(header, value)
  }
  switch (made.kind) {
    case 'answer':
      ctx.body = made.asText === true ? Buffer.from(made.body).toString() : Buffer.from(made.body)
      return
    case 'stream':
      ctx.body = Readable.from(chunksOf(made))
      return
    case 'pipe':
      ctx.respond = false
      Readable.from([made.body.subarray(0, 7), made.body.subarray(7)]).pipe(ctx.res)
      return
    case 'source':
      ctx.body = Readable.from(made.source)
      // Koa forgets the type and the length of an earlier body.
      ctx.set(Object.fromEntries(made.headers))
      return
    case 'file':
      ctx.body = createReadStream(made.path)
      return
    case 'early-hints':
      ctx.res.writeEarlyHints({ link: made.link })
      await made.proceed
      ctx.body = Buffer.from(made.body)
      return
    case 'trailers':
      ctx.respond = false
      ctx.set('Trailer', Object.keys(made.trailers).join())
      ctx.res.write(made.body)
      ctx.res.addTrailers(made.trailers)
      ctx.res.end()
      return
    case 'redirect':
      ctx.status = made.status
      return ctx.redirect(made.location)
    case 'throw':
      return ctx.throw(made.status, made.message)
    case 'crash':
      throw made.error
    default:
      return unreachable(made)
  }
}

async function* chunksOf({ chunks, breaks }: Extract<HandlerReply, { kind: 'stream' }>): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    yield chunk
    await turn()
  }
  if (breaks) throw new Error('upstream went away')
}

const variants: [string, Variant][] = [
  ['Koa 3', { form: 'handler', raw: 'captureBody', rendersErrors: false }],
  ['Koa 3 as middleware', { form: 'middleware', raw: 'rawBody', rendersErrors: false }],
  ['Koa 3 under an error handler of its own', { form: 'handler', raw: 'none', rendersErrors: true }],
]
for (const [name, variant] of variants) {
  describe(name, () => runAdapterCases(harness(name, variant), it))
}

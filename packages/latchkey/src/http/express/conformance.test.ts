import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { pipeline as pipelineNow, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as turn } from 'node:timers/promises'
import express5, { type Request, type Response } from 'express'
import { describe, it } from 'vitest'
import { handlerNeeds, middlewareNeeds } from '../../../test/http/node-needs.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import {
  type AdapterHarness,
  AppError,
  type AppSpec,
  type HandlerReply,
  type RouteSpec,
  runAdapterCases,
} from '@latchkey/conformance'
import { unreachable } from '../../ports/errors.ts'
import type { GuardedOperation } from '../../engine/operation.ts'
import { captureBody, captureVerify, executionOf, idempotent, rememberErrors, statusOf } from './index.ts'

type Express = typeof express5
// Its types are those of version 5 in everything that is used here.
const express4 = createRequire(import.meta.url)('express4') as Express

type Form = 'handler' | 'middleware'
/** `none`: only the parsed body is left. */
type Raw = 'captureBody' | 'verify' | 'none'

interface Variant {
  readonly express: Express
  readonly form: Form
  readonly raw: Raw
}

function harness(name: string, variant: Variant): AdapterHarness {
  return {
    name,
    provides: new Set(variant.form === 'handler' ? handlerNeeds : middlewareNeeds),
    headerOf: (context, header) => (context as Request).get(header), // what the adapter hands to scope
    bodyOf: context => (context as Request).body as unknown,
    start: app => start(app, variant),
    ...adapterStores,
  }
}

async function start({ outerHeaders, routes, phased, status }: AppSpec, { express, form, raw }: Variant) {
  const app = express()
  // No stack traces in the test's output.
  app.set('env', 'test')
  app.use((_req, res, next) => {
    for (const [header, value] of outerHeaders) res.append(header, value)
    next()
  })
  if (raw === 'captureBody') app.use(captureBody())
  const parsing = raw === 'verify' ? { verify: captureVerify } : {}
  app.use(express.json(parsing), express.raw({ ...parsing, type: () => true }))
  for (const route of routes) for (const one of chain(route, form)) app[verb(route)](route.path, one)
  for (const route of phased) {
    app[verb(route)](
      route.path,
      idempotent(route.operation, { input: async (req: Request) => route.input(bodyOf(req)) }),
    )
  }
  if (status !== undefined) app.get(status.path, statusOf(status.latchkey))
  if (form === 'middleware') app.use(rememberErrors())
  app.use(renderErrors)
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on TCP
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function renderErrors(error: unknown, _req: Request, res: Response, next: (error: unknown) => void): void {
  if (error instanceof AppError) res.status(error.renderAs).type('text').send(error.message)
  else next(error)
}

function verb({ method }: Pick<RouteSpec, 'method'>): 'get' | 'post' | 'put' | 'patch' | 'delete' {
  return method.toLowerCase() as ReturnType<typeof verb> // the same words
}

type Handler = (req: Request, res: Response, next: (error?: unknown) => void) => void

function chain(route: RouteSpec, form: Form): Handler[] {
  if (form === 'handler') {
    return [
      idempotent(route.operation, async (req: Request, res: Response, execution) =>
        reply(res, await route.run({ execution, body: bodyOf(req) })),
      ),
    ]
  }
  return [
    // The middleware harness provides no transactions, so every operation is guarded.
    idempotent(route.operation as GuardedOperation<Request>),
    (req, res, next) => {
      route
        .run({ execution: executionOf(req), body: bodyOf(req) })
        .then(made => reply(res, made))
        .catch(next)
    },
  ]
}

/** Version 4 leaves an empty object where no parser ran. */
function bodyOf(req: Request): unknown {
  return req.get('content-length') === undefined ? undefined : req.body
}

async function reply(res: Response, made: HandlerReply): Promise<void> {
  if ('headers' in made) {
    res.status(made.status)
    for (const [header, value] of made.headers) res.append(header, value)
  }
  switch (made.kind) {
    case 'answer':
      return void res.send(made.asText === true ? Buffer.from(made.body).toString() : Buffer.from(made.body))
    case 'stream':
      for (const chunk of made.chunks) {
        res.write(chunk)
        await turn()
      }
      return void (made.breaks ? res.destroy(new Error('upstream went away')) : res.end())
    case 'pipe':
      return pipeline(Readable.from([made.body.subarray(0, 7), made.body.subarray(7)]), res)
    case 'source':
      return void pipelineNow(Readable.from(made.source), res, () => {})
    case 'file':
      return res.sendFile(made.path)
    case 'early-hints':
      res.writeEarlyHints({ link: made.link })
      await made.proceed
      return void res.send(Buffer.from(made.body))
    case 'trailers':
      res.set('Trailer', Object.keys(made.trailers).join())
      res.write(made.body)
      res.addTrailers(made.trailers)
      return void res.end()
    case 'redirect':
      return res.redirect(made.status, made.location)
    case 'throw':
      throw Object.assign(new Error(made.message), { status: made.status, expose: true })
    case 'crash':
      throw made.error
    default:
      return unreachable(made)
  }
}

const variants: [string, Variant][] = [
  ['Express 5', { express: express5, form: 'handler', raw: 'captureBody' }],
  ['Express 5 as middleware', { express: express5, form: 'middleware', raw: 'verify' }],
  ['Express 4', { express: express4, form: 'handler', raw: 'none' }],
  ['Express 4 as middleware', { express: express4, form: 'middleware', raw: 'captureBody' }],
]
for (const [name, variant] of variants) {
  describe(name, () => runAdapterCases(harness(name, variant), it))
}

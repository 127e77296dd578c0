/** Conformance apps in Nest. The library is a parameter: one suite runs with the newest, another with the previous version. */
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type * as NestCommon from '@nestjs/common'
import type { INestApplication } from '@nestjs/common'
import type { Request, Response } from 'express'
import type { FastifyReply } from 'fastify'
import { type AdapterHarness, AppError, type AppSpec, type HandlerReply } from '@latchkey/conformance'
import type { RouteSpec, StatusRouteSpec } from '@latchkey/conformance'
import { executionOf, Idempotent, StatusOf } from '../../src/http/nest/index.ts'
import { sendReply } from './node-app.ts'
import { handlerNeeds } from './node-needs.ts'
import { adapterStores } from './stores.ts'

export interface NestLibrary {
  readonly common: typeof NestCommon
  /** With rawBody, a parser for text and bytes, and without logs. */
  create(module: Class): Promise<INestApplication>
}

/** `returned`: values, StreamableFile and exceptions. `@Res()`: Node's own calls on the response. */
export type NestForm = 'returned' | '@Res()'

export function nestHarness(name: string, nest: NestLibrary, form: NestForm): AdapterHarness {
  return {
    name,
    provides: new Set(handlerNeeds),
    ...adapterStores,
    // The context of this adapter is the platform's request.
    headerOf: (context, header) => [(context as Request).headers[header.toLowerCase()]].flat()[0],
    bodyOf: context => (context as Request).body as unknown,
    start: app => start(nest, app, form),
  }
}

async function start(nest: NestLibrary, { routes, phased, status, outerHeaders }: AppSpec, form: NestForm) {
  const controllers = routes.map(route => (form === 'returned' ? returning(nest, route) : sending(nest, route)))
  const inPhases = phased.map(route => replaced(nest, route))
  const told = status === undefined ? [] : [telling(nest, status)]
  const app = await nest.create(moduleOf(nest, [...controllers, ...inPhases, ...told]))
  app.useGlobalFilters(filterOf(nest))
  app.use((_req: unknown, res: Response, next: () => void) => {
    for (const [name, value] of outerHeaders) res.appendHeader(name, value)
    next()
  })
  return listening(app)
}

function filterOf({ common }: NestLibrary): NestCommon.ExceptionFilter {
  class RenderErrors {
    catch(error: AppError, host: NestCommon.ArgumentsHost): void {
      host.switchToHttp().getResponse<Response>().status(error.renderAs).send(error.message)
    }
  }
  common.Catch(AppError)(RenderErrors)
  return new RenderErrors()
}

export async function listening(app: INestApplication): Promise<{ url: string; close(): Promise<void> }> {
  await app.listen(0, '127.0.0.1')
  return { url: await app.getUrl(), close: () => app.close() }
}

export type Class = new () => object

export function moduleOf({ common }: NestLibrary, controllers: Class[], more: NestCommon.ModuleMetadata = {}): Class {
  class AppModule {}
  common.Module({ ...more, controllers })(AppModule)
  return AppModule
}

/** Applies decorators to a method without their syntax, the lowest first. */
export function decorate(controller: Class, method: string, decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(controller.prototype, method)
  if (descriptor === undefined) throw new Error(`no method ${method}`)
  for (const one of decorators) one(controller.prototype, method, descriptor)
  Object.defineProperty(controller.prototype, method, descriptor)
}

type Place = Pick<RouteSpec, 'method' | 'path'>

function routed({ common }: NestLibrary, controller: Class, { method, path }: Place, covered: MethodDecorator): Class {
  const verbs = { GET: common.Get, POST: common.Post, PUT: common.Put, PATCH: common.Patch, DELETE: common.Delete }
  decorate(controller, 'handle', [covered, verbs[method](path)])
  common.Controller()(controller)
  return controller
}

function replaced(nest: NestLibrary, route: AppSpec['phased'][number]): Class {
  class Replaced {
    handle(): never {
      throw new Error('the body of a phased method is never called')
    }
  }
  const input = async (request: Request) => route.input(request.body)
  return routed(nest, Replaced, route, Idempotent(route.operation, { input }))
}

function telling(nest: NestLibrary, { path, latchkey }: StatusRouteSpec): Class {
  class Telling {
    handle(): never {
      throw new Error('the body of a status method is never called')
    }
  }
  return routed(nest, Telling, { method: 'GET', path }, StatusOf(latchkey))
}

function returning(nest: NestLibrary, route: RouteSpec): Class {
  class Returning {
    async handle(request: Request, response: Response | FastifyReply): Promise<unknown> {
      const execution = executionOf(request)
      return valueOf(nest, response, await route.run({ execution, body: request.body ?? undefined }))
    }
  }
  nest.common.Req()(Returning.prototype, 'handle', 0)
  nest.common.Res({ passthrough: true })(Returning.prototype, 'handle', 1)
  return routed(nest, Returning, route, Idempotent(route.operation))
}

function sending(nest: NestLibrary, route: RouteSpec): Class {
  class Sending {
    async handle(request: Request, response: Response): Promise<void> {
      const execution = executionOf(request)
      const reply = await route.run({ execution, body: request.body })
      if (reply.kind === 'crash') throw reply.error
      if (reply.kind === 'throw') throw new nest.common.HttpException(reply.message, reply.status)
      sendReply(response, reply)
    }
  }
  nest.common.Req()(Sending.prototype, 'handle', 0)
  nest.common.Res()(Sending.prototype, 'handle', 1)
  return routed(nest, Sending, route, Idempotent(route.operation))
}

async function valueOf(
  { common }: NestLibrary,
  response: Response | FastifyReply,
  reply: HandlerReply,
): Promise<unknown> {
  if (reply.kind === 'crash') throw reply.error
  if (reply.kind === 'throw') throw new common.HttpException(reply.message, reply.status)
  if (reply.kind === 'early-hints') {
    response.writeEarlyHints({ link: reply.link })
    await reply.proceed
  }
  response.status(reply.status)
  if (reply.kind === 'redirect') return void response.header('Location', reply.location)
  for (const [name, value] of reply.headers) add(response, name, value)
  switch (reply.kind) {
    case 'stream':
      return new common.StreamableFile(Readable.from(chunksOf(reply.chunks, reply.breaks)))
    case 'pipe':
      return new common.StreamableFile(Readable.from(slices(reply.body)))
    case 'source':
      return new common.StreamableFile(Readable.from(reply.source))
    case 'file':
      return new common.StreamableFile(createReadStream(reply.path))
    case 'trailers':
      addTrailers(response, reply.trailers)
      // Trailers need chunks: Node sends none after a known length, and older versions of Fastify 5 lose them behind a stream.
      return 'append' in response
        ? new common.StreamableFile(Readable.from([Buffer.from(reply.body)]))
        : Buffer.from(reply.body).toString()
    case 'answer':
      if (reply.asText === true) return Buffer.from(reply.body).toString()
      return reply.body.byteLength === 0 ? undefined : new common.StreamableFile(reply.body)
    default:
      return reply.body.byteLength === 0 ? undefined : new common.StreamableFile(reply.body)
  }
}

/** Both platforms replace a header that is set again; Fastify does not for Set-Cookie. */
function add(response: Response | FastifyReply, name: string, value: string): void {
  if ('append' in response) return void response.append(name, value)
  const known = name.toLowerCase() === 'set-cookie' ? undefined : response.getHeader(name)
  response.header(name, known === undefined ? value : [known, value].flat())
}

function addTrailers(response: Response | FastifyReply, trailers: Readonly<Record<string, string>>): void {
  if ('append' in response) {
    response.setHeader('Trailer', Object.keys(trailers).join())
    return response.addTrailers(trailers)
  }
  for (const [name, value] of Object.entries(trailers))
    response.trailer(name, (_reply, _payload, done) => done(null, value))
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

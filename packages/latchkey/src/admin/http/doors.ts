/** The routes in frameworks that wrap Node's request and response. Express, Nest and node:http take `nodeAdmin`; Hono takes the handler itself. */
import { nodeDoor, type NodeAdminRequest, type NodeAdminResponse } from './node.ts'
import type { AdminHandler } from './routes.ts'

/** The members of Koa's context that are used. */
export interface KoaAdminContext {
  readonly req: NodeAdminRequest
  readonly res: NodeAdminResponse
  /** Of Koa itself: false, and it leaves the response alone. */
  respond?: boolean | undefined
  readonly originalUrl: string
  /** What a body parser has made of the body is in `request.body`. */
  readonly request: { readonly body?: unknown }
}

/** Middleware for Koa. Mount it where only operators come. */
export function koaAdmin(handler: AdminHandler): (context: KoaAdminContext) => Promise<void> {
  const door = nodeDoor(handler)
  return context => {
    context.respond = false
    return door(parsed(context.req, { body: context.request.body, originalUrl: context.originalUrl }), context.res)
  }
}

/** The members of Fastify's request and reply that are used. */
export interface FastifyAdminRequest {
  readonly raw: NodeAdminRequest
  readonly body?: unknown
}
export interface FastifyAdminReply {
  readonly raw: NodeAdminResponse
  hijack(): unknown
}

/** A route handler for Fastify: `app.all('/admin/*', fastifyAdmin(handler))`. */
export function fastifyAdmin(
  handler: AdminHandler,
): (request: FastifyAdminRequest, reply: FastifyAdminReply) => Promise<void> {
  const door = nodeDoor(handler)
  return (request, reply) => {
    reply.hijack()
    return door(parsed(request.raw, { body: request.body }), reply.raw)
  }
}

/** The request, with what the framework has read of it. */
function parsed(req: NodeAdminRequest, over: Pick<NodeAdminRequest, 'body' | 'originalUrl'>): NodeAdminRequest {
  const { method, url, headers } = req
  return { method, url, headers, [Symbol.asyncIterator]: () => req[Symbol.asyncIterator](), ...over }
}

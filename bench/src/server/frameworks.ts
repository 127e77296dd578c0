/** The same endpoint in each framework, with and without Latchkey: what a framework costs is on both sides of its ratio. */
import { createServer } from 'node:http'
import { serve } from '@hono/node-server'
import express, { type Request as ExpressRequest, type Response as ExpressResponse } from 'express'
import Fastify, { type FastifyRequest } from 'fastify'
import { type Context as HonoContext, Hono } from 'hono'
import Koa from 'koa'
import { captureVerify, idempotent as onExpress } from 'latchkey/http/express'
import { idempotent as onFastify, latchkeyFastify } from 'latchkey/http/fastify'
import { idempotent as onFetch } from 'latchkey/http/fetch'
import { idempotent as onHono } from 'latchkey/http/hono'
import { captureBody, idempotent as onKoa } from 'latchkey/http/koa'
import type { Frame } from '../subjects.ts'
import type { Backend } from './backends/backend.ts'
import { listen } from './listen.ts'
import { guardedOperation } from './operations.ts'
import type { Order, Work } from './order.ts'

/** Without a backend: the bare server. Answers with its port. */
type Listen = (work: Work, backend: Backend | undefined) => Promise<number>

export const frameworks: Readonly<Record<Exclude<Frame, 'plain'>, Listen>> = {
  async express({ handle }, backend) {
    const app = express()
    app.use(express.json({ verify: captureVerify }))
    const create = async (request: ExpressRequest, response: ExpressResponse) =>
      void response.status(201).json(await handle(request.body as Order))
    app.post('/orders', backend === undefined ? create : onExpress(guardedOperation<ExpressRequest>(backend), create))
    return listen(createServer(app))
  },

  async fastify({ handle }, backend) {
    const app = Fastify()
    await app.register(latchkeyFastify)
    const create = async (request: FastifyRequest, reply: { code(status: number): unknown }) => {
      reply.code(201)
      return handle(request.body as Order)
    }
    app.post('/orders', backend === undefined ? create : onFastify(guardedOperation<FastifyRequest>(backend), create))
    const address = await app.listen({ port: 0, host: '127.0.0.1' })
    return Number(new URL(address).port)
  },

  async hono({ handle }, backend) {
    const app = new Hono()
    const create = async (c: HonoContext) => c.json(await handle(await c.req.json<Order>()), 201)
    if (backend === undefined) app.post('/orders', create)
    else app.post('/orders', onHono(guardedOperation<HonoContext>(backend)), create)
    return listenFetch(app.fetch)
  },

  async fetch({ handle }, backend) {
    const create = async (request: Request) =>
      Response.json(await handle((await request.json()) as Order), { status: 201 })
    return listenFetch(backend === undefined ? create : onFetch(guardedOperation<Request>(backend), create))
  },

  async koa({ handle }, backend) {
    const app = new Koa()
    app.use(captureBody())
    app.use(async (ctx, next) => {
      const chunks: Buffer[] = []
      for await (const chunk of ctx.req) chunks.push(chunk as Buffer)
      Object.assign(ctx.request, { body: JSON.parse(Buffer.concat(chunks).toString()) })
      await next()
    })
    const create = async (ctx: Koa.Context) => {
      ctx.status = 201
      ctx.body = await handle((ctx.request as unknown as { body: Order }).body)
    }
    app.use(backend === undefined ? create : onKoa(guardedOperation<Koa.Context>(backend), create))
    const answer = app.callback()
    return listen(createServer((request, response) => void answer(request, response)))
  },
}

function listenFetch(fetch: (request: Request) => Response | Promise<Response>): Promise<number> {
  return new Promise(resolve => {
    serve({ fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port))
  })
}

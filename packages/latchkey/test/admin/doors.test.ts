import 'reflect-metadata'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { serve } from '@hono/node-server'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { type AdminHandler, adminRoutes, fastifyAdmin, koaAdmin, nodeAdmin } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { moduleOf } from '../http/nest.ts'
import { authorize } from './api.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function listen(server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    server.closeAllConnections()
    return new Promise(closed => server.close(closed))
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const doors: Readonly<Record<string, (handler: AdminHandler) => Promise<string>>> = {
  'node:http': handler => listen(createServer(nodeAdmin(handler))),
  Express: handler => listen(createServer(express().use('/ops/admin', nodeAdmin(handler)))),
  'Express, after a parser': handler =>
    listen(createServer(express().use(express.json()).use('/ops/admin', nodeAdmin(handler)))),
  Koa(handler) {
    const serveKoa = new Koa().use(koaAdmin(handler)).callback()
    return listen(createServer((req, res) => void serveKoa(req, res)))
  },
  async Fastify(handler) {
    const app = Fastify()
    app.all('/ops/admin/*', fastifyAdmin(handler))
    ends.push(() => app.close())
    return new URL(await app.listen({ port: 0, host: '127.0.0.1' })).host
  },
  async Nest(handler) {
    const create = (module: new () => object) => NestFactory.create(module, { logger: false, abortOnError: false })
    const app = await create(moduleOf({ common, create }, []))
    app.use('/ops/admin', nodeAdmin(handler))
    ends.push(() => app.close())
    await app.listen(0, '127.0.0.1')
    return new URL(await app.getUrl()).host
  },
  async Hono(handler) {
    const app = new Hono().all('/ops/admin/*', c => handler(c.req.raw))
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    await new Promise(resolve => server.once('listening', resolve))
    ends.push(() => new Promise(closed => server.close(closed)))
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  },
}

async function handlerOf(hosts: () => readonly string[]): Promise<{ handler: AdminHandler; id: string }> {
  const latchkey = createLatchkey({
    store: memoryStore(),
    scope: () => 'acme',
    maintenance: false,
    telemetry: silentTelemetry,
  })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  await pay.run({ scope: 'acme', key: 'k', input: 1 }, () => Promise.reject(new Error('read timeout'))).catch(() => {})
  const id = latchkey.identify({ scope: 'acme', operation: 'pay', key: 'k' })
  // The port is the kernel's, so that the name is known when the server listens.
  let routes: AdminHandler | undefined
  return { id, handler: request => (routes ??= adminRoutes({ latchkey, authorize, hosts: hosts() }))(request) }
}

describe.each(Object.entries(doors))('in %s', (_, open) => {
  it('serves reads and acts under any mount, and refuses another name', async () => {
    let host = ''
    const { handler, id } = await handlerOf(() => [host])
    host = await open(handler)
    const url = `http://${host}/ops/admin/api/v1`
    const headers = { authorization: 'Bearer ann', 'content-type': 'application/json' }
    const row = (await (await fetch(`${url}/keys/${id}`, { headers })).json()) as { version: string }
    expect(row).toMatchObject({ id, state: 'unknown' })
    const taken = await fetch(`${url}/keys/${id}/take`, {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': '"a"', 'if-match': `"${row.version}"` },
      body: JSON.stringify({ reason: 'mine' }),
    })
    expect([taken.status, ((await taken.json()) as { row: { owner: string } }).row.owner]).toEqual([200, 'ann'])
    expect(taken.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect((await fetch(`${url}/session`)).status).toBe(401)
    const other = host.replace('127.0.0.1', 'localhost')
    expect(
      (await fetch(`http://${other}/ops/admin/api/v1/session`, { headers }).catch(() => undefined))?.status ?? 421,
    ).toBe(421)
  })
})

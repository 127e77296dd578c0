import 'reflect-metadata'
import { type Context, Hono } from 'hono'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import * as onExpress from 'latchkey/http/express'
import * as onFastify from 'latchkey/http/fastify'
import * as onFetch from 'latchkey/http/fetch'
import * as onHono from 'latchkey/http/hono'
import * as onKoa from 'latchkey/http/koa'
import * as onNest from 'latchkey/http/nest'
import { memoryStore } from 'latchkey/stores/memory'

const orders = () =>
  createLatchkey<unknown, unknown>({ store: memoryStore(), scope: () => 'acme' }).guarded('orders.create', {
    onFailure: 'rerun',
  })

describe('every adapter', () => {
  it('has the same function for the execution of a request, except fetch, which has no chain', () => {
    for (const adapter of [onFastify, onHono, onKoa, onNest]) expect(adapter.executionOf).toBe(onExpress.executionOf)
    expect(onFetch).not.toHaveProperty('executionOf')
  })

  it('calls what builds the input of a phased operation PhasedRoute<Context, Input>', () => {
    interface Pay {
      readonly cents: number
    }
    type Expected = { readonly input: (context: Request) => Pay | Promise<Pay> }
    expectTypeOf<onExpress.PhasedRoute<Request, Pay>>().toEqualTypeOf<Expected>()
    expectTypeOf<onFastify.PhasedRoute<Request, Pay>>().toEqualTypeOf<Expected>()
    expectTypeOf<onFetch.PhasedRoute<Request, Pay>>().toEqualTypeOf<Expected>()
    expectTypeOf<onHono.PhasedRoute<Request, Pay>>().toEqualTypeOf<Expected>()
    expectTypeOf<onKoa.PhasedRoute<Request, Pay>>().toEqualTypeOf<Expected>()
    expectTypeOf<onNest.PhasedRoute<Request, Pay>>().toEqualTypeOf<Expected>()
  })

  it('has a middleware form, except fetch, which refuses it at once', () => {
    const mounted = [onExpress.idempotent(orders()), onHono.idempotent(orders()), onKoa.idempotent(orders())]
    for (const one of [...mounted, onFastify.idempotent(orders())]) expect(one).toBeTypeOf('function')
    // @ts-expect-error The types say so as well.
    expect(() => onFetch.idempotent(orders())).toThrow('orders.create: a fetch server has no chain of middleware')
  })
})

it('is the execution behind a Hono context in both forms, and undefined where the request is not covered', async () => {
  const app = new Hono()
  app.post(
    '/handler',
    onHono.idempotent(orders(), (c: Context) => c.json(onHono.executionOf(c)?.key)),
  )
  app.use('/behind', onHono.idempotent(orders()))
  app.on(['POST', 'PUT'], '/behind', c => c.json(onHono.executionOf(c)?.key ?? 'not covered'))
  const ask = async (path: string, method: string) =>
    (await app.request(path, { method, headers: { 'Idempotency-Key': 'k' } })).json()
  expect([await ask('/handler', 'POST'), await ask('/behind', 'POST'), await ask('/behind', 'PUT')]).toEqual([
    'k',
    'k',
    'not covered',
  ])
})

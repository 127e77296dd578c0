import 'reflect-metadata'
import express, { type Request as ExpressRequest } from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import type { Context as KoaContext } from 'koa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { TransactionalHarness } from '@latchkey/conformance'
import { json } from '../../src/engine/steps/json.ts'
import { createLatchkey, type Latchkey } from '../../src/engine/latchkey.ts'
import type { PhasedOperation } from '../../src/engine/operation.ts'
import { idempotent as onExpress } from '../../src/http/express/index.ts'
import { idempotent as onFastify, latchkeyFastify } from '../../src/http/fastify/index.ts'
import { idempotent as onFetch } from '../../src/http/fetch/index.ts'
import { idempotent as onKoa } from '../../src/http/koa/index.ts'
import { Idempotent, type NestContext } from '../../src/http/nest/index.ts'
import { interceptorsOf } from '../../src/http/nest/metadata.ts'
import { listenOn } from './node-app.ts'
import { adapterStores } from './stores.ts'

interface Pay {
  readonly cents: number
  readonly account: string
}

let database: TransactionalHarness
let latchkey: Latchkey<unknown, unknown>
let ends: (() => Promise<unknown>)[]

beforeEach(async () => {
  database = await adapterStores.transactional()
  latchkey = createLatchkey<unknown, unknown>({ store: database.store, scope: () => 'acme' })
  ends = []
})

afterEach(async () => {
  for (const end of ends) await end()
  await latchkey.close()
  await database.close()
})

function payments(finish: () => Promise<unknown> = async () => 'paid'): PhasedOperation<Pay, unknown> {
  return latchkey.phased<Pay>('payments.create', { version: 1 }, async (x, input) => {
    await x.phase('record', tx => database.insert(tx, `${input.cents} of ${input.account}`))
    return json(201, { note: await finish() })
  })
}

const guarded = () => latchkey.guarded('orders.create', { onFailure: 'rerun' })
const asked = { method: 'POST', headers: { 'Idempotency-Key': 'k' } }

/** Each adapter with an operation and what should come with it, as JavaScript may call it. */
const adapters = { onFetch, onExpress, onKoa, onFastify, Idempotent } as unknown as Record<
  string,
  (operation: unknown, given?: unknown) => unknown
>

describe.each(Object.entries(adapters))('a phased operation in %s', (_, cover) => {
  it.each([
    ['nothing', undefined],
    ['a handler', async () => 'paid'],
    ['an input that is no function', { input: { cents: 5 } }],
  ])('is refused when the route is declared with %s instead of { input }', (_what, given) => {
    expect(() => cover(payments(), given)).toThrow('payments.create: a phased operation needs { input }')
  })

  it('is the only one that takes { input }', () => {
    expect(() => cover(guarded(), { input: () => 1 })).toThrow(
      'orders.create: only a phased or deferred operation takes { input }',
    )
    expect(() => cover(undefined, { input: () => 1 })).toThrow('needs an operation first')
  })
})

it('has its input checked by the types of every adapter', () => {
  const pay = payments()
  const half = { cents: 5 }
  const whole = { ...half, account: 'a' }
  const declare = () => {
    onFetch(pay, { input: (_: Request, { id }: { id: string }) => ({ ...half, account: id }) })
    onExpress(pay, { input: (_: ExpressRequest) => whole })
    onKoa(pay, { input: async (_: KoaContext) => whole })
    onFastify(pay, { input: (_: FastifyRequest) => whole })
    Idempotent(pay, { input: (_: ExpressRequest) => whole })
    // @ts-expect-error The account is missing.
    onFetch(pay, { input: () => half })
    // @ts-expect-error
    onExpress(pay, { input: () => half })
    // @ts-expect-error
    onKoa(pay, { input: () => half })
    // @ts-expect-error
    onFastify(pay, { input: () => half })
    // @ts-expect-error
    Idempotent(pay, { input: () => half })
    // @ts-expect-error Phased, and without its input.
    onExpress(pay)
    // @ts-expect-error
    onKoa(pay)
    // @ts-expect-error
    Idempotent(pay)
    // @ts-expect-error A handler has no place in a phased operation.
    onFastify(pay, async () => whole)
    // @ts-expect-error
    onFetch(pay, async () => new Response())
    // @ts-expect-error Not phased.
    onFetch(guarded(), { input: () => whole })
    // @ts-expect-error
    onExpress(guarded(), { input: () => whole })
    // @ts-expect-error
    onKoa(guarded(), { input: () => whole })
    // @ts-expect-error
    onFastify(guarded(), { input: () => whole })
    // @ts-expect-error
    Idempotent(guarded(), { input: () => whole })
  }
  expect(declare).toBeTypeOf('function')
})

it('gets its input from what a fetch server passes on, and leaves its errors to onError or to the server', async () => {
  const pay = payments(() => Promise.reject(new Error('declined by the bank')))
  const route = {
    input: async (request: Request, { id }: { id: string }) => ({ cents: Number(await request.text()), account: id }),
  }
  const request = (key: string) =>
    new Request('http://shop.test/pay', { method: 'POST', body: '5', headers: { 'Idempotency-Key': key } })
  await expect(onFetch(pay, route)(request('a'), { id: 'eve' })).rejects.toThrow('declined by the bank')
  const onError = (error: unknown) => new Response(String(error), { status: 502 })
  const rendered = await onFetch(pay, route, { onError })(request('b'), { id: 'bob' })
  expect([rendered.status, await rendered.text()]).toEqual([502, 'Error: declined by the bank'])
  expect(await database.values()).toEqual(['5 of eve', '5 of bob'])
})

it('leaves an answer alone that a timeout gave while it ran, and keeps its own for the retry', async () => {
  let finish = () => {}
  const done = new Promise<void>(resolve => (finish = resolve))
  const app = express()
  app.use((_req, res, next) => {
    const timer = setTimeout(() => void (res.writableEnded || res.status(503).send('too slow')), 200)
    res.on('close', () => clearTimeout(timer))
    next()
  })
  const failed: unknown[] = []
  app.post(
    '/pay',
    onExpress(
      payments(() => done),
      { input: () => ({ cents: 5, account: 'eve' }) },
    ),
  )
  app.use((error: unknown, _req: unknown, _res: unknown, next: (error: unknown) => void) => {
    failed.push(error)
    next(error)
  })
  const { url, close } = await listenOn(app)
  ends.push(close)
  const first = await fetch(`${url}/pay`, asked)
  expect([first.status, await first.text()]).toEqual([503, 'too slow'])
  finish()
  await expect.poll(async () => (await fetch(`${url}/pay`, asked)).status, { timeout: 20_000 }).toBe(201)
  expect(failed).toEqual([])
})

it('leaves Fastify as it is stored, whatever onSend hooks and serializers would make of it', async () => {
  const app = fastify({ forceCloseConnections: true })
  ends.push(() => app.close())
  await app.register(latchkeyFastify)
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('x-hook', 'ran')
    return `${String(payload)} and more`
  })
  const schema = { response: { 201: { type: 'object', properties: {} } } }
  app.post('/pay', { schema }, onFastify(payments(), { input: () => ({ cents: 5, account: 'eve' }) }))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  for (const replayed of [null, 'true']) {
    const { status, headers, ...answer } = await fetch(`${url}/pay`, asked).then(async response => ({
      status: response.status,
      headers: response.headers,
      body: await response.text(),
    }))
    expect([status, answer.body]).toEqual([201, '{"note":"paid"}'])
    expect([headers.get('x-hook'), headers.get('Idempotent-Replayed')]).toEqual(['ran', replayed])
  }
})

it('is found out at the start where the Fastify plugin is missing', () => {
  const app = fastify()
  const handler = onFastify(payments(), { input: () => ({ cents: 5, account: 'eve' }) })
  expect(() => app.post('/pay', handler)).toThrow('Register the plugin first')
})

it('refuses what Nest hands it outside of HTTP, instead of calling the empty method', async () => {
  class Payments {
    create(): void {}
  }
  const descriptor = Object.getOwnPropertyDescriptor(Payments.prototype, 'create')
  if (descriptor === undefined) throw new Error('no method')
  Idempotent(payments(), { input: () => ({ cents: 5, account: 'eve' }) })(Payments.prototype, 'create', descriptor)
  // The one that was just added.
  const [interceptor] = interceptorsOf(descriptor.value) as {
    intercept(context: Pick<NestContext, 'getType'>): Promise<unknown>
  }[]
  await expect(interceptor?.intercept({ getType: () => 'rpc' })).rejects.toThrow('answers HTTP requests only (got rpc)')
})

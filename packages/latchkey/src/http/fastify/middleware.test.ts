import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import type { AtomicExecution, Execution } from '../../engine/execution.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { executionOf, idempotent, latchkeyFastify } from './index.ts'

let latchkey: Latchkey<unknown, FastifyRequest>
let app: FastifyInstance

beforeEach(async () => {
  latchkey = createLatchkey<unknown, FastifyRequest>({ store: memoryStore(), scope: () => 'acme' })
  app = fastify()
  await app.register(latchkeyFastify)
})

afterEach(async () => {
  await app.close()
  await latchkey.close()
})

const orders = () => latchkey.guarded('orders.create', { onFailure: 'rerun' })
const ask = (method: 'POST' | 'PUT') => app.inject({ method, url: '/orders', headers: { 'idempotency-key': 'k' } })

describe('the middleware form', () => {
  it('covers the hooks behind it and the handler, and shows them the execution', async () => {
    const seen: string[] = []
    const hook = (name: string) => async (request: FastifyRequest) =>
      void seen.push(`${name}: ${executionOf(request)?.key}`)
    app.route({
      method: ['PUT', 'POST'],
      url: '/orders',
      preHandler: [hook('before'), idempotent(orders()), hook('behind')],
      handler: async request => ({ attempt: executionOf(request)?.attempt ?? 'not covered' }),
    })
    expect((await ask('POST')).json()).toEqual({ attempt: 1 })
    expect((await ask('POST')).headers['idempotent-replayed']).toBe('true')
    expect(seen).toEqual(['before: undefined', 'behind: k', 'before: undefined'])
    expect((await ask('PUT')).json()).toEqual({ attempt: 'not covered' })
  })

  it('is refused at start where the plugin is missing', async () => {
    const bare = fastify()
    bare.post('/orders', { preHandler: idempotent(orders()) }, async () => 'unprotected')
    await expect(bare.ready()).rejects.toThrow('orders.create: the route has no claim')
    await bare.close()
  })

  it('is refused beside the handler form: a route is one operation', () => {
    const preHandler = idempotent(orders())
    const handler = idempotent(orders(), async () => 'twice')
    expect(() => app.post('/orders', { preHandler }, handler)).toThrow('orders.create: the route has two idempotent()')
  })

  it('has the type of execution that its caller names', () => {
    const read = (request: FastifyRequest) => {
      expectTypeOf(executionOf(request)).toEqualTypeOf<Execution | undefined>()
      expectTypeOf(executionOf<AtomicExecution<string>>(request)?.tx).toEqualTypeOf<string | undefined>()
    }
    expect(read).toBeTypeOf('function')
  })
})

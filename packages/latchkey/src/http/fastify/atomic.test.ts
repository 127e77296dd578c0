import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adapterStores } from '../../../test/http/stores.ts'
import type { TransactionalHarness } from '@latchkey/conformance'
import type { AtomicExecution } from '../../engine/execution.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import { executionOf, idempotent, latchkeyFastify } from './index.ts'

let database: TransactionalHarness
let latchkey: Latchkey<unknown, FastifyRequest>
let app: FastifyInstance
let runs: number

beforeEach(async () => {
  database = await adapterStores.transactional()
  latchkey = createLatchkey<unknown, FastifyRequest>({ store: database.store, scope: () => 'acme' })
  app = fastify({ forceCloseConnections: true })
  await app.register(latchkeyFastify)
  runs = 0
})

afterEach(async () => {
  await app.close()
  await latchkey.close()
  await database.close()
})

/** Any work that outlasts the answer by several turns of the event loop. */
const aWhile = () => new Promise(resolve => setTimeout(resolve, 50))

type Work = (reply: FastifyReply, tx: unknown) => Promise<FastifyReply>
type Form = (work: Work) => void

const asHandler: Form = work =>
  void app.post(
    '/orders',
    idempotent(latchkey.atomic('orders.create'), (_request, reply, { tx }) => work(reply, tx)),
  )

const asMiddleware: Form = work =>
  void app.post('/orders', { preHandler: idempotent(latchkey.atomic('orders.create')) }, (request, reply) =>
    work(reply, executionOf<AtomicExecution<unknown>>(request)?.tx),
  )

async function serve(form: Form, continueWith: (tx: unknown) => Promise<void>): Promise<() => Promise<Response>> {
  form(async (reply, tx) => {
    runs += 1
    await database.insert(tx, `before-${runs}`)
    reply.code(201).send({ runs })
    await aWhile()
    if (runs === 1) await continueWith(tx)
    return reply
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return () => fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k' } })
}

describe.each([
  ['an atomic handler that goes on after reply.send', asHandler],
  ['an atomic handler behind the middleware form that goes on after reply.send', asMiddleware],
])('%s', (_, form) => {
  it('has its later rows in the same commit, and its answer waits for them', async () => {
    const ask = await serve(form, tx => database.insert(tx, 'after'))
    expect((await ask()).status).toBe(201)
    expect(await database.values()).toEqual(['before-1', 'after'])
    const again = await ask()
    expect([again.status, again.headers.get('idempotent-replayed'), runs]).toEqual([201, 'true', 1])
  })

  it('takes its answer back when it throws: the rows are gone, and the retry runs', async () => {
    const ask = await serve(form, () => Promise.reject(new Error('out of stock after all')))
    expect((await ask()).status).toBe(500)
    expect(await database.values()).toEqual([])
    const again = await ask()
    expect([again.status, again.headers.get('idempotent-replayed'), runs]).toEqual([201, null, 2])
    expect(await database.values()).toEqual(['before-2'])
  })
})

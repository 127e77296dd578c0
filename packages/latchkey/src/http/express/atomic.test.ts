import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Request, type Response as Res } from 'express'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { oneConnection } from '../../../test/http/one-connection.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import { sqliteHarness } from '../../../test/sqlite/fixture.ts'
import type { TransactionalHarness } from '@latchkey/conformance'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import { isLatchkeyError } from '../../ports/errors.ts'
import { idempotent } from './index.ts'

let url: string
let server: Server | undefined

afterEach(async () => {
  server?.closeAllConnections()
  await new Promise(resolve => (server === undefined ? resolve(undefined) : server.close(resolve)))
  server = undefined
})

function newApp(): ReturnType<typeof express> {
  const app = express()
  app.set('env', 'test')
  return app.use(express.json())
}

async function listen(app: (req: IncomingMessage, res: ServerResponse) => void): Promise<void> {
  server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on TCP
}

function post(): Promise<Response> {
  const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }
  return fetch(`${url}/orders`, { method: 'POST', headers, body: '{"sku":1}' })
}

describe('atomic', () => {
  let database: TransactionalHarness
  let atomic: Latchkey<unknown, Request>
  beforeEach(async () => {
    database = await adapterStores.transactional()
    atomic = createLatchkey<unknown, Request>({ store: database.store, scope: () => 'acme' })
  })
  afterEach(async () => {
    await atomic.close()
    await database.close()
  })

  it('is refused as middleware, at construction, with the cure', () => {
    let caught: unknown
    try {
      // @ts-expect-error: the types say so too
      idempotent(atomic.atomic('orders.create'))
    } catch (error) {
      caught = error
    }
    expect(isLatchkeyError(caught, 'misconfigured') && caught.message).toContain('async (req, res, { tx })')
  })

  it('commits what the handler wrote after it had answered', async () => {
    const app = newApp()
    app.post(
      '/orders',
      idempotent(atomic.atomic('orders.create'), async (_req: Request, res: Res, { tx }) => {
        res.status(201).json({ made: true })
        await new Promise(resolve => setTimeout(resolve, 20))
        await database.insert(tx, 'order')
      }),
    )
    await listen(app)
    expect([(await post()).status, await database.values()]).toEqual([201, ['order']])
  })

  it('rolls back and takes the answer back when the handler throws after it has answered', async () => {
    let runs = 0
    const app = newApp()
    app.post(
      '/orders',
      idempotent(atomic.atomic('orders.create'), async (_req: Request, res: Res, { tx }) => {
        runs += 1
        await database.insert(tx, `order-${runs}`)
        res.status(201).json({ made: true })
        if (runs === 1) throw new Error('too late')
      }),
    )
    await listen(app)
    const first = await post()
    expect([first.status, await first.text(), await database.values()]).toEqual([500, '', []])
    expect([(await post()).status, await database.values()]).toEqual([201, ['order-2']])
  })

  it('answers 503 when the transaction runs out of time, and a handler that goes on disturbs nobody', async () => {
    const slow = await sqliteHarness(path => new Database(path))
    const hurried = createLatchkey<unknown, Request>({
      store: await slow.open({ transactionMs: 100 }),
      scope: () => 'acme',
    })
    let open = () => {}
    const opened = new Promise<void>(resolve => (open = resolve))
    let end = () => {}
    const firstEnded = new Promise<void>(resolve => (end = resolve))
    let ends = 0
    const app = newApp()
    app.post(
      '/orders',
      idempotent(hurried.atomic('orders.create'), async (_req: Request, res: Res) => {
        if (ends === 0) await opened
        try {
          res.status(201).write('ma')
          res.end('de')
          if (ends === 0) res.json({ twice: true })
        } finally {
          ends += 1
          end()
        }
      }),
    )
    await listen(app)
    const connection = oneConnection(`${url}/orders`)
    try {
      expect((await connection.ask())[0]).toBe(503)
      open()
      await firstEnded
      expect(await connection.ask()).toEqual([201, 'made', true])
    } finally {
      connection.destroy()
      await hurried.close()
      await slow.close()
    }
  })

  it('rolls back when Express reports an error behind the back of the handler', async () => {
    const app = newApp()
    app.post(
      '/orders',
      idempotent(atomic.atomic('orders.create'), async (_req: Request, res: Res, { tx }) => {
        await database.insert(tx, 'order')
        res.sendFile('/no/such/file')
      }),
    )
    await listen(app)
    expect([(await post()).status, await database.values()]).toEqual([404, []])
  })
})

/** Mistakes that people make, each as a program: what it prints stands in docs/guides/errors.md. */
import express, { type Request, type Response as ExpressResponse } from 'express'
import { type Context, Hono } from 'hono'
import pg from 'pg'
import { createLatchkey, singleTenant } from 'latchkey'
import { idempotent as onExpress } from 'latchkey/http/express'
import { idempotent } from 'latchkey/http/hono'
import { memoryStore } from 'latchkey/stores/memory'
import { postgresStore } from 'latchkey/stores/postgres'
import { sqliteStore } from 'latchkey/stores/sqlite'

export interface Setup {
  /** The mistake, in a few words. */
  readonly mistake: string
  /** As it stands in the code. */
  readonly code: string
  /** `url`: of an empty database. */
  run(url: string): unknown
}

const nothing = { status: 204, headers: [], body: new Uint8Array(), version: 0 }

/** What a JavaScript user can write, and the types forbid. */
type Untyped = never

export const constructionMistakes: readonly Setup[] = [
  {
    mistake: 'a guarded operation that does not say what a failure half-way means',
    code: "latchkey.guarded('orders.create')",
    run: () => latchkey().guarded('orders.create', undefined as Untyped),
  },
  {
    mistake: 'a misspelt option',
    code: "latchkey.guarded('orders.create', { onFailur: 'hold' })",
    run: () => latchkey().guarded('orders.create', { onFailure: 'hold', onFailur: 'hold' } as Untyped),
  },
  {
    mistake: 'a value that an option does not have',
    code: "latchkey.guarded('orders.create', { onFailure: 'retry' })",
    run: () => latchkey().guarded('orders.create', { onFailure: 'retry' } as Untyped),
  },
  {
    mistake: 'a lease of no time',
    code: "latchkey.guarded('orders.create', { onFailure: 'hold', leaseMs: 0 })",
    run: () => latchkey().guarded('orders.create', { onFailure: 'hold', leaseMs: 0 }),
  },
  {
    mistake: 'no scope',
    code: 'createLatchkey({ store })',
    run: () => createLatchkey({ store: memoryStore() } as Untyped),
  },
  {
    mistake: 'no pool',
    code: 'postgresStore({})',
    run: () => postgresStore({} as Untyped),
  },
  {
    mistake: 'a client in place of the pool',
    code: 'postgresStore({ pool: new pg.Client() })',
    run: () => postgresStore({ pool: new pg.Client() as Untyped }),
  },
  {
    mistake: 'no database file',
    code: 'sqliteStore({})',
    run: () => sqliteStore({} as Untyped),
  },
  {
    mistake: 'guarded work on a pool of one connection',
    code: "postgresStore({ pool: new pg.Pool({ max: 1 }) }) … latchkey.guarded('orders.create', …)",
    run: url => latchkey(postgresStore({ pool: poolOf(url, 1) })).guarded('orders.create', { onFailure: 'hold' }),
  },
  {
    mistake: 'a name in place of the operation',
    code: "idempotent('orders.create', handler)",
    run: () => idempotent('orders.create' as Untyped, () => new Response()),
  },
  {
    mistake: 'an atomic operation as Express middleware',
    code: "app.post('/orders', idempotent(latchkey.atomic('orders.create')), handler)",
    run: () => onExpress(latchkey().atomic('orders.create') as Untyped),
  },
  {
    mistake: 'a phased operation without its input',
    code: 'idempotent(pay)',
    run: () => idempotent(latchkey().phased('pay', { version: 1 }, async () => nothing) as Untyped),
  },
]

export const requestMistakes: readonly Setup[] = [
  {
    mistake: 'a forgotten migrate()',
    code: 'const store = postgresStore({ pool })',
    run: url => post(appOn(latchkey(postgresStore({ pool: poolOf(url) })))),
  },
  {
    mistake: 'the same, in a plain function',
    code: "await operation.run({ scope: 'acme', key: 'k', input: {} }, handler)",
    run: url =>
      latchkey(postgresStore({ pool: poolOf(url) }))
        .guarded('orders.create', { onFailure: 'hold' })
        .run({ scope: 'acme', key: 'k', input: {} }, () => 'made'),
  },
  {
    mistake: 'a connection string that leads nowhere',
    code: "new pg.Pool({ connectionString: 'postgres://localhost:1/shop' })",
    run: () => post(appOn(latchkey(postgresStore({ pool: poolOf('postgres://127.0.0.1:1/shop') })))),
  },
  {
    mistake: 'a database that does not exist',
    code: "new pg.Pool({ connectionString: 'postgres://localhost/shopp' })",
    run: url => post(appOn(latchkey(postgresStore({ pool: poolOf(new URL('/shopp', url).href) })))),
  },
  {
    mistake: 'a scope function that finds no tenant',
    code: "scope: context => context.get('tenant')",
    run: () => post(appOn(createLatchkey({ store: memoryStore(), scope: () => undefined as Untyped }))),
  },
  {
    mistake: 'Express without a body parser',
    code: "app.post('/orders', idempotent(operation, handler))",
    run: () => postToExpress(),
  },
  {
    mistake: 'a client that sends no key',
    code: 'POST /orders without Idempotency-Key',
    run: () => post(appOn(latchkey()), { headers: {} }),
  },
  {
    mistake: 'a client that sends another body with the same key',
    code: 'POST /orders, twice',
    async run() {
      const app = appOn(latchkey())
      await app.request('/orders', { method: 'POST', headers: withKey, body: '{"sku":"tea"}' })
      await post(app, { body: '{"sku":"coffee"}' })
    },
  },
  {
    mistake: 'a client that sends more than bodyBytesMax',
    code: 'POST /orders with 2 MB',
    run: () => post(appOn(latchkey()), { body: JSON.stringify({ note: 'x'.repeat(2 << 20) }) }),
  },
]

export const setups: readonly Setup[] = [...constructionMistakes, ...requestMistakes]

function latchkey(store: Parameters<typeof createLatchkey>[0]['store'] = memoryStore()) {
  return createLatchkey({ store, scope: singleTenant, maintenance: false })
}

function poolOf(connectionString: string, max = 4): pg.Pool {
  return new pg.Pool({ connectionString, max, connectionTimeoutMillis: 2_000 })
}

function appOn(instance: ReturnType<typeof latchkey>): Hono {
  const operation = instance.guarded('orders.create', { onFailure: 'rerun' })
  return new Hono().post(
    '/orders',
    idempotent(operation, async (c: Context) => c.json({ made: true }, 201)),
  )
}

const withKey = { 'Idempotency-Key': 'order-7', 'Content-Type': 'application/json' }

async function post(app: Hono, request: { headers?: Record<string, string>; body?: string } = {}): Promise<void> {
  const response = await app.request('/orders', { method: 'POST', headers: withKey, body: '{"sku":"tea"}', ...request })
  await tell(response)
}

async function postToExpress(): Promise<void> {
  const operation = latchkey().guarded('orders.create', { onFailure: 'hold' })
  const app = express().post(
    '/orders',
    onExpress(operation, async (_: Request, res: ExpressResponse) => void res.json({ made: true })),
  )
  const server = app.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as { port: number } // listens on TCP
  await tell(
    await fetch(`http://127.0.0.1:${port}/orders`, { method: 'POST', headers: withKey, body: '{"sku":"tea"}' }),
  )
  server.close()
}

/** The code alone: the guide has the rest of the answer. */
async function tell(response: Response): Promise<void> {
  const { type, differing_parts: differs } = (await response.json()) as { type: string; differing_parts?: string[] }
  const code = type.slice(type.lastIndexOf(':') + 1)
  console.log(
    `the client gets ${response.status} ${code}${differs === undefined ? '' : `, which differs in its ${differs.join()}`}`,
  )
}

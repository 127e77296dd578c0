/** The payments API: two tenants, operations of every kind, and the ways to settle an unknown outcome. */
import { type Context, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { createLatchkey, type Latchkey, type LatchkeyWithoutTransactions, type Telemetry } from 'latchkey'
import type { AdminHost } from 'latchkey/admin'
import { idempotent, statusOf } from 'latchkey/http/hono'
import type { Target } from 'latchkey/outbox'
import { createWorkers, type Workers } from 'latchkey/workers'
import { buildExport, type ExportInput } from './build-export.ts'
import { operatorRoutes } from './operator-routes.ts'
import { pay, payOut, type PaymentInput } from './pay.ts'
import type { ProviderClient } from './provider-client.ts'
import { settleUnknowns } from './settle-unknowns.ts'
import type { ShopDatabase } from './shop-database.ts'

export type Env = { Variables: { account: string } }

/** Demo tokens, printed at the start. A real shop verifies a signature here. */
export const tokens: Readonly<Record<string, string>> = { 'demo-acme': 'acme', 'demo-globex': 'globex' }

export interface Api {
  readonly app: Hono<Env>
  readonly latchkey: { close(): Promise<unknown> }
  readonly workers: Workers
}

/** Short for a playground: the work of a killed process is resumed after seconds, not after half a minute. */
export const leaseMs = 5_000
export const pace = { everyMs: 1_000 }
export const exportDeadlineMs = 3_600_000

export type Page = <Tx>(app: Hono<Env>, latchkey: AdminHost<Tx>) => void

export interface ApiParts<Tx> {
  readonly database: ShopDatabase<Tx>
  readonly provider: ProviderClient
  readonly telemetry: Telemetry
  readonly webhookSecret: string
  readonly quarantineMs: number
  /** Adds the pages of the playground: its own, and the operators' console. */
  readonly page: Page
  /** Where the outbox delivers receipts. */
  readonly receipts: Target
}

export function paymentsApi<Tx>({ telemetry, receipts, page, ...parts }: ApiParts<Tx>): Api {
  const { database, provider } = parts
  const latchkey = createLatchkey({ store: database.store, telemetry, scope: (c: Context<Env>) => [c.get('account')] })
  const amount = { leaseMs, describe: (input: unknown) => describe(input, 'amount') }
  const payIn = latchkey.phased<PaymentInput>('payments.create', { ...amount, version: 1 }, (x, input) =>
    pay(x, input, { database, provider }),
  )
  const createPayout = latchkey.phased<PaymentInput>('payouts.create', { ...amount, version: 1 }, (x, input) =>
    payOut(x, input, { database, provider }),
  )
  const createExport = latchkey.deferred<ExportInput>(
    'exports.create',
    { leaseMs, deadlineMs: exportDeadlineMs },
    (x, input) => buildExport(x, input, database),
  )
  const { reconcile, onWebhook } = settleUnknowns({ ...parts, latchkey, payments: [payIn, createPayout] })

  const app = new Hono<Env>().onError(renderError)
  // Before the tenants' tokens: anybody may read it, and the provider proves itself by its signature.
  page(app, latchkey)
  app.post('/webhooks/provider', c => onWebhook(c.req.raw))
  app.use(authenticate)
  orderRoutes(app, latchkey, database)
  app.post('/payments', idempotent(payIn, { input: paymentInput }))
  app.post('/payouts', idempotent(createPayout, { input: paymentInput }))
  app.post('/exports', idempotent(createExport, { input: c => ({ account: c.get('account') }) }))
  app.get('/operations/:id', statusOf(latchkey))
  transferRoute(app, latchkey, provider)
  readRoutes(app, parts)
  operatorRoutes(app, latchkey)
  const workers = createWorkers(latchkey, {
    sweeper: pace,
    resumer: pace,
    reconciler: { use: reconcile, ...pace },
    // The lane of a relay that was killed is free again as soon as its work.
    relay: { targets: { receipts }, leaseMs },
  })
  return { app, latchkey, workers }
}

/** Atomic: the order, the key and the answer commit together. */
function orderRoutes<Tx>(app: Hono<Env>, latchkey: Latchkey<Tx, Context<Env>>, database: ShopDatabase<Tx>): void {
  const createOrder = latchkey.atomic('orders.create', { describe: input => describe(input, 'sku') })
  app.post(
    '/orders',
    idempotent(
      createOrder,
      async (c: Context<Env>, { tx }) => {
        const { sku } = await c.req.json<{ sku?: unknown }>()
        if (typeof sku !== 'string') throw new HTTPException(400, { message: 'sku must be a string' })
        return c.json(await database.insertOrder(tx, { account: c.get('account'), sku }), 201)
      },
      { onError: renderError },
    ),
  )
}

/** Guarded: any handler. There is no look-up or webhook for it, so only a person can settle a lost answer. */
export function transferRoute(
  app: Hono<Env>,
  latchkey: LatchkeyWithoutTransactions<Context<Env>>,
  provider: ProviderClient,
): void {
  const createTransfer = latchkey.guarded('transfers.create', {
    onFailure: 'hold',
    leaseMs,
    describe: input => describe(input, 'amount'),
  })
  app.post(
    '/transfers',
    idempotent(
      createTransfer,
      async (c: Context<Env>, { downstreamKey, signal }) => {
        const { account, amount } = await paymentInput(c)
        const asked = { key: downstreamKey('transfer'), account, amount, dedup: false }
        const answer = await provider.charge(asked, signal)
        if ('declined' in answer) return c.json({ declined: true, amount }, 402)
        return c.json({ transfer: answer.id, amount }, 201)
      },
      { onError: renderError },
    ),
  )
}

/** Without a database there are no rows of the shop to read. */
export function readRoutes<Tx>(
  app: Hono<Env>,
  { database, provider }: Pick<ApiParts<Tx>, 'provider'> & Partial<Pick<ApiParts<Tx>, 'database'>>,
): void {
  const resources = {
    ...(database && shopResources(database)),
    ledger: async (account: string) => (await provider.charges()).filter(charge => charge.account === account),
  }
  for (const [name, read] of Object.entries(resources)) {
    app.get(`/${name}`, async c => c.json(await read(c.get('account'))))
    app.get(`/${name}/:id`, async c => {
      const all: readonly { id: unknown }[] = await read(c.get('account'))
      const found = all.find(({ id }) => String(id) === c.req.param('id'))
      if (found === undefined) throw new HTTPException(404, { message: `${name} has no ${c.req.param('id')}` })
      return c.json(found)
    })
  }
}

type Resource = (account: string) => Promise<readonly { id: unknown }[]>

function shopResources<Tx>(database: ShopDatabase<Tx>): Readonly<Record<string, Resource>> {
  return {
    orders: account => database.orders(account),
    payments: async account => (await database.payments(account)).filter(({ direction }) => direction === 'in'),
    payouts: async account => (await database.payments(account)).filter(({ direction }) => direction === 'out'),
    exports: account => database.exports(account),
    // Without a broker there is no ledger, and this stays empty.
    bookings: account => database.bookings(account),
  }
}

export async function paymentInput(c: Context<Env>): Promise<PaymentInput> {
  const { amount } = await c.req.json<{ amount?: unknown }>()
  if (typeof amount !== 'number') throw new HTTPException(400, { message: 'amount must be a number' })
  return { account: c.get('account'), amount }
}

export async function authenticate(c: Context<Env>, next: () => Promise<void>): Promise<void> {
  const token = c.req.header('authorization')?.replace(/^Bearer /, '') ?? ''
  const account = tokens[token]
  if (account === undefined)
    throw new HTTPException(401, { message: 'send Authorization: Bearer demo-acme or demo-globex' })
  c.set('account', account)
  await next()
}

export function renderError(error: Error, c: Context): Response {
  const status = error instanceof HTTPException ? error.status : 500
  return c.json({ error: error.message }, status)
}

export function describe(input: unknown, member: string): string {
  const value = typeof input === 'object' && input !== null ? Reflect.get(input, member) : undefined
  return `${member} ${String(value)}`
}

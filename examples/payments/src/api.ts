/** The payments API: two tenants, orders in one commit, payments held when nobody can know. */
import { type Context, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { createLatchkey, type Latchkey, type OperatorVerdict, type Telemetry } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { createWorkers, type Workers } from 'latchkey/workers'
import { pay, type PaymentInput, receiptTarget } from './pay.ts'
import type { Provider } from './provider-process.ts'
import type { ShopDatabase } from './shop-database.ts'

export type Env = { Variables: { account: string } }

/** Demo tokens, printed at the start. A real shop verifies a signature here. */
export const tokens: Readonly<Record<string, string>> = { 'demo-acme': 'acme', 'demo-globex': 'globex' }

export interface Api {
  readonly app: Hono<Env>
  readonly latchkey: { close(): Promise<unknown> }
  readonly workers: Workers
}

/** Short for a playground: what a killed process left behind is looked at after seconds, not after half a minute. */
const shortLeaseMs = 5_000
const pace = { sweeper: { everyMs: 1_000 }, resumer: { everyMs: 1_000 } }

export interface ApiParts<Tx> {
  readonly database: ShopDatabase<Tx>
  readonly provider: Provider
  readonly telemetry: Telemetry
  /** A line for every receipt that the outbox delivered. */
  readonly onReceipt: (line: string) => void
}

export function paymentsApi<Tx>({ database, provider, telemetry, onReceipt }: ApiParts<Tx>): Api {
  const paymentOptions = { version: 1, leaseMs: shortLeaseMs, describe: (input: unknown) => describe(input, 'amount') }
  const latchkey = createLatchkey({ store: database.store, telemetry, scope: (c: Context<Env>) => [c.get('account')] })
  const createOrder = latchkey.atomic('orders.create', { describe: input => describe(input, 'sku') })
  const createPayment = latchkey.phased<PaymentInput>('payments.create', paymentOptions, (x, input) =>
    pay(x, input, { database, provider }),
  )
  const createTransfer = latchkey.guarded('transfers.create', {
    onFailure: 'hold',
    leaseMs: shortLeaseMs,
    describe: input => describe(input, 'amount'),
  })
  const onError = renderError
  const app = new Hono<Env>().onError(onError)
  app.use(authenticate)

  app.post(
    '/orders',
    idempotent(
      createOrder,
      async (c: Context<Env>, { tx }) => {
        const { sku } = await c.req.json<{ sku?: unknown }>()
        if (typeof sku !== 'string') throw new HTTPException(400, { message: 'sku must be a string' })
        return c.json(await database.insertOrder(tx, { account: c.get('account'), sku }), 201)
      },
      { onError },
    ),
  )
  app.post('/payments', idempotent(createPayment, { input: paymentInput }))
  app.post(
    '/transfers',
    idempotent(
      createTransfer,
      async (c: Context<Env>, { downstreamKey, signal }) => {
        const { account, amount } = await paymentInput(c)
        const charge = await provider.charge({ key: downstreamKey('transfer'), account, amount }, signal)
        return c.json({ transfer: charge.id, amount }, 201)
      },
      { onError },
    ),
  )
  app.get('/orders', async c => c.json(await database.orders(c.get('account'))))
  app.get('/payments', async c => c.json(await database.payments(c.get('account'))))
  app.get('/ledger', async c =>
    c.json((await provider.charges()).filter(({ account }) => account === c.get('account'))),
  )
  operatorRoutes(app, latchkey)
  return {
    app,
    latchkey,
    workers: createWorkers(latchkey, { ...pace, targets: { receipts: receiptTarget(onReceipt) } }),
  }
}

/** What an operator does about the payment that nobody can decide by program. */
function operatorRoutes<Tx>(app: Hono<Env>, latchkey: Latchkey<Tx, Context<Env>>): void {
  app.get('/operator/unknown', async c => {
    const { records } = await latchkey.list({ state: 'unknown' })
    return c.json(
      records.map(({ id, scope, operation, description, attempts }) => ({
        id,
        scope,
        operation,
        description,
        attempts,
      })),
    )
  })
  app.post('/operator/unknown/:id/settle', async c => {
    const { verdict, by, reason } = await c.req.json<{ verdict: OperatorVerdict; by: string; reason: string }>()
    return c.json(await latchkey.settle({ id: c.req.param('id') }, verdict, { by, reason }))
  })
}

async function paymentInput(c: Context<Env>): Promise<PaymentInput> {
  const { amount } = await c.req.json<{ amount?: unknown }>()
  if (typeof amount !== 'number') throw new HTTPException(400, { message: 'amount must be a number' })
  return { account: c.get('account'), amount }
}

async function authenticate(c: Context<Env>, next: () => Promise<void>): Promise<void> {
  const token = c.req.header('authorization')?.replace(/^Bearer /, '') ?? ''
  const account = tokens[token]
  if (account === undefined)
    throw new HTTPException(401, { message: 'send Authorization: Bearer demo-acme or demo-globex' })
  c.set('account', account)
  await next()
}

function renderError(error: Error, c: Context): Response {
  const status = error instanceof HTTPException ? error.status : 500
  return c.json({ error: error.message }, status)
}

function describe(input: unknown, member: string): string {
  const value = typeof input === 'object' && input !== null ? Reflect.get(input, member) : undefined
  return `${member} ${String(value)}`
}

/** The payments API with its keys in Redis, which has no transactions: guarded, phased and deferred operations of effects, and no rows of the shop. */
import { type Context, Hono } from 'hono'
import { createLatchkey, type EffectsExecution, json, type Outcome } from 'latchkey'
import { idempotent, statusOf } from 'latchkey/http/hono'
import type { RedisStore } from 'latchkey/stores/redis'
import { createWorkers } from 'latchkey/workers'
import {
  type Api,
  type ApiParts,
  authenticate,
  describe,
  type Env,
  exportDeadlineMs,
  leaseMs,
  pace,
  paymentInput,
  readRoutes,
  renderError,
  transferRoute,
} from './api.ts'
import type { ExportInput } from './build-export.ts'
import { operatorRoutes } from './operator-routes.ts'
import { charging, type PaymentInput, transferring } from './pay.ts'
import type { ProviderClient } from './provider-client.ts'
import { settleUnknowns } from './settle-unknowns.ts'

export interface RedisApiParts extends Omit<ApiParts<never>, 'database' | 'receipts'> {
  readonly store: RedisStore
}

/** For the person who starts it. */
export const leftOutOnRedis =
  "orders (atomic: the order commits with its key), receipts (they go through the outbox), and the shop's own rows of payments and exports"

export function redisApi({ store, telemetry, page, ...parts }: RedisApiParts): Api {
  const { provider } = parts
  const latchkey = createLatchkey<Context<Env>>({ store, telemetry, scope: c => [c.get('account')] })
  const declared = {
    leaseMs,
    version: 1,
    steps: 'effects',
    describe: (input: unknown) => describe(input, 'amount'),
  } as const
  const payIn = latchkey.phased<PaymentInput>('payments.create', declared, (x, input) =>
    moveMoney(x, input, { provider, dedup: true }),
  )
  const createPayout = latchkey.phased<PaymentInput>('payouts.create', declared, (x, input) =>
    moveMoney(x, input, { provider, dedup: false }),
  )
  const createExport = latchkey.deferred<ExportInput>(
    'exports.create',
    { leaseMs, deadlineMs: exportDeadlineMs, steps: 'effects' },
    (x, input) => exportLedger(x, input, provider),
  )
  const { reconcile, onWebhook } = settleUnknowns({ ...parts, latchkey, payments: [payIn, createPayout] })

  const app = new Hono<Env>().onError(renderError)
  // Before the tenants' tokens: anybody may read it, and the provider proves itself by its signature.
  page(app, latchkey)
  app.post('/webhooks/provider', c => onWebhook(c.req.raw))
  app.use(authenticate)
  app.post('/payments', idempotent(payIn, { input: paymentInput }))
  app.post('/payouts', idempotent(createPayout, { input: paymentInput }))
  app.post('/exports', idempotent(createExport, { input: c => ({ account: c.get('account') }) }))
  app.get('/operations/:id', statusOf(latchkey))
  transferRoute(app, latchkey, provider)
  readRoutes(app, { provider })
  operatorRoutes(app, latchkey)
  const workers = createWorkers(latchkey, { sweeper: pace, resumer: pace, reconciler: { use: reconcile, ...pace } })
  return { app, latchkey, workers }
}

async function moveMoney(
  x: EffectsExecution,
  { account, amount }: PaymentInput,
  { provider, dedup }: { provider: ProviderClient; dedup: boolean },
): Promise<Outcome> {
  const answer = await x.effect('charge', dedup ? charging : transferring, ({ key, signal }) =>
    provider.charge({ key, account, amount, reference: x.id, dedup }, signal),
  )
  return 'declined' in answer ? json(402, { declined: true, amount }) : json(201, { charge: answer.id, amount })
}

/** Reading again changes nothing. */
const reading = { dedup: { windowMs: exportDeadlineMs }, timeoutMs: 5_000 }

/** There are no rows of the shop to export: the provider's ledger, in two steps. */
async function exportLedger(x: EffectsExecution, { account }: ExportInput, provider: ProviderClient): Promise<Outcome> {
  const amounts = await x.effect('read the ledger', reading, async () => {
    const charges = await provider.charges()
    return charges.filter(charge => charge.account === account).map(({ amount }) => amount)
  })
  const total = await x.effect('add it up', reading, async () => amounts.reduce((sum, amount) => sum + amount, 0))
  return json(201, { account, charges: amounts.length, total })
}

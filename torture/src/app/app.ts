/**
 * One of the application processes: an API over Hono, and Latchkey's workers. Started by fork with a JSON argument; reports
 * its port. Everything that the checker needs goes into its history.
 */
import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import pg from 'pg'
import { classifyNetworkFailure, type GuardedExecution, notExecuted, outcomeUnknown } from 'latchkey'
import { idempotent, statusOf } from 'latchkey/http/hono'
import { keysInPostgres, keysInRedis, type KeysOptions, type RedisPlace } from './keys.ts'
import { historyTelemetry } from './telemetry.ts'
import { startWorkers } from './workers.ts'
import { armFaultPoints, type FaultPoints } from './fault-points.ts'
import { type AppEvent, openHistory } from '../history.ts'
import type { Settlement } from '../clients/operator.ts'
import { chargeTimeoutMs, keyOf } from './payments.ts'
import { type ChargeAnswer, providerClient } from './provider-client.ts'
import { settleUnknowns } from './settle-unknowns.ts'
import { type Asked, insertOrder, upsertTransfer } from './shop.ts'

export interface AppArgument {
  readonly name: string
  readonly directory: string
  readonly databaseUrl: string
  /** Undefined: the keys are in the database. */
  readonly redis?: RedisPlace
  /** In front of the database. */
  readonly cache?: RedisPlace
  readonly poolMax: number
  readonly providerUrl: string
  readonly receiptsUrl: string
  readonly dedup: boolean
  readonly leaseMs: number
  readonly webhookSecret: string
  readonly quarantineMs: number
  readonly faultPoints?: FaultPoints
}

const argument: AppArgument = JSON.parse(process.argv[2] ?? '{}')
const { leaseMs, dedup, webhookSecret, quarantineMs, receiptsUrl } = argument
const history = openHistory<AppEvent>(argument.directory, `app-${argument.name}`)
const pool = new pg.Pool({
  connectionString: argument.databaseUrl,
  max: argument.poolMax,
  connectionTimeoutMillis: 1_500,
  // A proxy that went dark would hold its connection for ever.
  query_timeout: 4_000,
})
pool.on('error', () => {})
const provider = providerClient(argument.providerUrl, history)

const options: KeysOptions = {
  pool,
  dedup,
  money: { provider, leaseMs, history },
  latchkey: {
    scope: (c: Context) => c.req.header('x-account') ?? '',
    telemetry: historyTelemetry(history),
    storeTimeoutMs: 1_500,
  },
}
const { redis, cache } = argument
const keys = redis === undefined ? keysInPostgres(options, cache) : keysInRedis(redis, options)
const { latchkey, createOrder, createPayment, createRefund, hasOutbox } = keys
const guarded = { leaseMs, holdMsMax: 60_000, describe: keyOf }
const createTransfer = latchkey.guarded('transfers.create', { ...guarded, onFailure: 'rerun' })
const createPayout = latchkey.guarded('payouts.create', { ...guarded, onFailure: 'hold' })
const { reconcile, onWebhook } = settleUnknowns({
  latchkey,
  phased: [createPayment, createRefund],
  payouts: createPayout,
  provider,
  pool,
  webhookSecret,
  quarantineMs,
})

const onError = (error: Error, c: Context) => c.json({ error: error.message }, 500)
const app = new Hono().onError(onError)
if (createOrder !== undefined) {
  app.post(
    '/orders',
    idempotent(createOrder, async (c: Context, { tx }) => {
      const order = await insertOrder(tx, await c.req.json<Asked>())
      return c.json({ order, nonce: randomUUID() }, 201)
    }),
  )
}
app.post(
  '/transfers',
  idempotent(createTransfer, async (c: Context) => {
    const transfer = await upsertTransfer(pool, await c.req.json<Asked>())
    return c.json({ transfer, nonce: randomUUID() }, 201)
  }),
)
app.post(
  '/payouts',
  idempotent(
    createPayout,
    async (c: Context, execution) => {
      const answer = await payOut(await c.req.json<Asked>(), execution)
      const nonce = randomUUID()
      return answer.kind === 'declined'
        ? c.json({ declined: true, nonce }, 402)
        : c.json({ charge: answer.id, nonce }, 201)
    },
    { onError },
  ),
)
app.post('/payments', idempotent(createPayment, { input: (c: Context) => c.req.json<Asked>() }))
app.post('/refunds', idempotent(createRefund, { input: (c: Context) => c.req.json<Asked>() }))
app.get('/operations/:id', statusOf(latchkey))
app.post('/webhooks', c => onWebhook(c.req.raw))
app.post('/operator', async c => {
  const { id, verdict } = await c.req.json<Settlement>()
  return c.json(await latchkey.settle({ id }, verdict, { by: 'operator', reason: 'found in the books' }))
})

/** Without an idempotency key: only Latchkey stands between a second run and a second charge. */
async function payOut({ key, account, amount }: Asked, execution: GuardedExecution): Promise<ChargeAnswer> {
  const { id } = execution
  try {
    const downstreamKey = execution.downstreamKey('payout')
    const signal = AbortSignal.any([execution.signal, AbortSignal.timeout(chargeTimeoutMs)])
    return await provider.charge({ key, id, downstreamKey, dedup: false, account, amount, signal })
  } catch (error) {
    throw classifyNetworkFailure(error) === 'never-left' ? notExecuted(error) : outcomeUnknown(error)
  }
}

/** Often, because the process may be killed at any time. */
const countEveryMs = 250
let hitsTold = 0
const counting = setInterval(() => {
  const hits = keys.cacheHits()
  if (hits > hitsTold) history.write({ type: 'cache-hits', detail: String(hits - hitsTold) })
  hitsTold = hits
}, countEveryMs)

armFaultPoints(history, argument.faultPoints)
const workers = startWorkers(latchkey, { receiptsUrl: hasOutbox ? receiptsUrl : undefined, reconcile })
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  history.write({ type: 'started', detail: JSON.stringify(argument.faultPoints ?? null) })
  process.send?.({ port })
})
process.on('disconnect', () => process.exit(1))
process.once('SIGTERM', () => void stop())

async function stop(): Promise<void> {
  clearInterval(counting)
  server.close()
  await workers.stop()
  await latchkey.close()
  await keys.close()
  await pool.end()
  process.exit(0)
}

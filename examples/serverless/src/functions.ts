/** Functions on a platform that ends them at a time limit, and freezes their process between two requests. */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { createLatchkey, json } from 'latchkey'
import { idempotent } from 'latchkey/http/fetch'
import { postgresStore } from 'latchkey/stores/postgres'
import { createWorkers } from 'latchkey/workers'

const { DATABASE_URL: connectionString, PROVIDER_URL: provider = '', LIMIT_MS: limitMs = '30000' } = process.env

/** Three seconds before the limit all calls end: time to store what is known, and to answer. */
const usableMs = Number(limitMs) - 3_000

// Few connections in each of many instances, and none that an idle instance keeps.
const pool = new pg.Pool({ connectionString, max: 2, idleTimeoutMillis: 1_000 })

const latchkey = createLatchkey({
  store: postgresStore({ pool }),
  scope: (request: Request) => request.headers.get('x-account') ?? '',
  // Its timer does not fire in a frozen process. `runWorkers` does its work.
  maintenance: false,
})

// A retry waits until the lease of a process that was ended runs out, and takes its work over.
const wait = { onInProgress: 'wait', waitMs: usableMs / 2 } as const
const soon = { ...wait, leaseMs: 5_000 } as const

/** One transaction: what is ended half-way is rolled back. */
export const createOrder = idempotent(latchkey.atomic('orders.create', wait), async (request, { tx }) => {
  const { sku } = (await request.json()) as { sku: string }
  const { rows } = await tx.query('insert into orders (sku) values ($1) returning id', [sku])
  return Response.json(rows[0], { status: 201 })
})

/** Steps: what is ended half-way is resumed, by a retry or by `runWorkers`, and the charge is repeated under its own key. */
const pay = latchkey.phased('payments.create', { version: 1, ...soon }, async (x, { amount }: { amount: number }) => {
  // It is tried three times, and a process that is ended meanwhile is replaced after timeoutMs and 5 s.
  const limits = { dedup: { windowMs: 24 * 3_600_000 }, timeoutMs: usableMs / 4 }
  const charge = await x.effect('charge', limits, ({ key, signal }) => post('/charges', { amount }, { key, signal }))
  await x.phase('record', async tx => void (await tx.query('insert into payments (charge) values ($1)', [charge])))
  return json(201, { charge })
})
export const createPayment = idempotent(pay, { input: request => request.json() as Promise<{ amount: number }> })

/** Neither: after `holdMsMax` the signal ends the call, and the answer is 504 before the platform's limit. */
export const sendLetter = idempotent(
  latchkey.guarded('letters.send', { ...soon, onFailure: 'hold', holdMsMax: usableMs }),
  async (request, { signal }) => {
    const letter = await post('/letters', await request.json(), { signal })
    return Response.json({ letter }, { status: 201 })
  },
)

/** For the platform's scheduler, once a minute. */
export async function runWorkers(): Promise<void> {
  const workers = createWorkers(latchkey)
  workers.start()
  await pause(usableMs / 3)
  await workers.drain({ timeoutMs: usableMs / 2 })
  await workers.stop()
}

interface Sent {
  readonly key?: string
  readonly signal: AbortSignal
}

async function post(path: string, body: unknown, { key, signal }: Sent): Promise<string> {
  const headers = { 'Content-Type': 'application/json', ...(key === undefined ? {} : { 'Idempotency-Key': key }) }
  const response = await fetch(provider + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
  if (!response.ok) throw new Error(`the provider answered ${response.status}`)
  return await response.text()
}

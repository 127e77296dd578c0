/** Rows that are out of the ordinary, and messages that nobody takes: made by the operations of a shop, as life makes them. */
import { randomUUID } from 'node:crypto'
import { createLatchkey, json, type Latchkey, silentTelemetry } from 'latchkey'
import { createRelay, functionTarget } from 'latchkey/outbox'
import type { PostgresStore } from 'latchkey/stores/postgres'
import type pg from 'pg'
import { fill } from '../outbox/measure.ts'
import { operationName, scope } from '../server/operations.ts'

export type Store = PostgresStore<pg.PoolClient>
export type Shop = ReturnType<typeof openShop>

const tenants = 50
/** How a provider fails to answer. */
export const causes = ['ETIMEDOUT', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'] as const

export function openShop(store: Store) {
  const latchkey = createLatchkey({ store, scope: () => scope, telemetry: silentTelemetry, maintenance: false })
  const guarded = (name: string) => latchkey.guarded(name, { onFailure: 'hold', describe: () => '€ 50.00' })
  const pay = latchkey.phased('payments.create', { version: 1 }, async (x, input: { n: number }) => {
    await x.reference(referenceOf(input.n))
    return json(201, await x.effect('charge', { timeoutMs: 5_000 }, () => noAnswer(input.n)))
  })
  const [order, refund, transfer] = [guarded(operationName), guarded('refunds.create'), guarded('transfers.create')]
  return { latchkey, order, refund, transfer, pay }
}

export function tenantOf(n: number): string {
  return `tenant-${n % tenants}`
}

export function referenceOf(n: number): string {
  return `ch_${n}`
}

function noAnswer(n: number): Promise<never> {
  return Promise.reject(Object.assign(new Error('no answer came'), { code: causes[n % causes.length] }))
}

/** In turn phased with an open effect and a reference, guarded with one, and guarded without. */
export async function addUnknown({ pay, refund, transfer }: Shop, rows: number): Promise<void> {
  await eachOf(rows, async n => {
    const request = { scope: tenantOf(n), key: `unknown-${n}`, input: { n } }
    const referred = async (x: { reference(text: string): Promise<unknown> }) => {
      await x.reference(referenceOf(n))
      return noAnswer(n)
    }
    const runs = [
      () => pay.run(request),
      () => refund.run(request, referred),
      () => transfer.run(request, () => noAnswer(n)),
    ]
    await runs[n % runs.length]?.().catch(() => {})
  })
}

/** Claims whose owner says nothing any more. */
export async function addOverdue(store: Store, rows: number): Promise<void> {
  await eachOf(rows, async n => {
    await store.claim({
      identity: { id: randomUUID(), scope: tenantOf(n), operation: 'transfers.create' },
      claimId: randomUUID(),
      fingerprint: new Uint8Array(33),
      recovery: 'hold',
      leaseMs: 1,
      expiresInMs: 86_400_000,
      description: undefined,
    })
  })
}

/** First those that a relay gives up, then those that wait for one. */
export async function addMessages(
  { store, pool, latchkey }: { store: Store; pool: pg.Pool; latchkey: Latchkey<pg.PoolClient, unknown> },
  { parked, waiting }: { parked: number; waiting: number },
): Promise<void> {
  await fill(pool, latchkey, parked)
  const targets = { '*': functionTarget(() => Promise.reject(new Error('no such subject'))) }
  const relay = createRelay({ outbox: store.outbox, targets, attemptsMax: 1, telemetry: silentTelemetry })
  while ((await relay.relayOnce()).kind !== 'idle');
  await fill(pool, latchkey, waiting)
}

const atOnce = 64

export async function eachOf(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

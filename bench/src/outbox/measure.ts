/** How fast a backlog leaves the outbox, against the relay that people write first, and how long a message takes. */
import { setTimeout as delay } from 'node:timers/promises'
import { createLatchkey, type Latchkey, singleTenant } from 'latchkey'
import { createRelay, functionTarget } from 'latchkey/outbox'
import { type PostgresStore, postgresStore } from 'latchkey/stores/postgres'
import { createWorkers } from 'latchkey/workers'
import pg from 'pg'
import { inTurn } from '../repetitions.ts'
import { quantile } from '../statistics.ts'

export interface OutboxOrder {
  readonly url: string
  readonly repetitions: number
  /** Messages that are drained in batches: a multiple of a hundred. */
  readonly messages: number
  /** Messages that are drained one by one. */
  readonly singles: number
  /** Whether the latency is measured, too. */
  readonly latency: boolean
}

export interface OutboxResult {
  /** Messages per second, by repetition. */
  readonly oneByOne: readonly number[]
  readonly inBatches: readonly number[]
  /** From the commit to the delivery, at 200 messages a second. */
  readonly latency: { readonly hinted: Latency; readonly polled: Latency } | undefined
}

export interface Latency {
  readonly p50Ms: number
  readonly p99Ms: number
}

interface Parts {
  readonly pool: pg.Pool
  readonly store: PostgresStore<pg.PoolClient>
  readonly latchkey: Latchkey<pg.PoolClient, unknown>
}

const warmUp = { messages: 20_000, singles: 500 }
export const payload = { order: 7, note: 'z'.repeat(100) }

export async function measureOutbox(order: OutboxOrder): Promise<OutboxResult> {
  const { url, repetitions, messages, singles } = order
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const store = postgresStore({ pool })
  const parts = { pool, store, latchkey: createLatchkey({ store, scope: singleTenant }) }
  await store.migrate()
  await pool.query('create table naive_outbox (id bigserial primary key, payload jsonb not null)')
  // Until their code is compiled.
  await drain(parts, warmUp.messages)
  await drainNaively(pool, warmUp.singles)
  const rates = { oneByOne: new Array<number>(), inBatches: new Array<number>() }
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const names = ['oneByOne', 'inBatches'] as const
    for (const name of inTurn(names, repetition)) {
      rates[name].push(await (name === 'oneByOne' ? drainNaively(pool, singles) : drain(parts, messages)))
    }
  }
  const latency = order.latency
    ? { hinted: await latencyOf(parts, true), polled: await latencyOf(parts, false) }
    : undefined
  await pool.end()
  return { ...rates, latency }
}

/** Relays a backlog until nothing is left. */
async function drain({ pool, store, latchkey }: Parts, messages: number): Promise<number> {
  const { outbox } = store
  if (outbox === undefined) throw new Error('the store has no outbox')
  await fill(pool, latchkey, messages)
  let delivered = 0
  const relay = createRelay({ outbox, targets: { '*': functionTarget(() => void (delivered += 1)) } })
  const startedAt = performance.now()
  while ((await relay.relayOnce()).kind !== 'idle');
  const spentMs = performance.now() - startedAt
  if (delivered !== messages) throw new Error(`the relay delivered ${delivered} of ${messages} messages`)
  return (delivered * 1_000) / spentMs
}

const appended = 100

/** Some are appended as an application does it, and the others are copies of them, spread over the lanes alike. */
export async function fill(pool: pg.Pool, latchkey: Parts['latchkey'], messages: number): Promise<void> {
  const client = await pool.connect()
  await client.query('begin')
  for (let n = 0; n < appended; n++) await latchkey.outbox.append(client, { topic: 'orders', payload })
  await client.query(
    `insert into latchkey.outbox (lane, aggregate, dedup_id, topic, payload, headers, created_at)
     select o.lane, o.aggregate, o.dedup_id || '-' || n, o.topic, o.payload, o.headers, o.created_at
     from generate_series(2, $1::integer) n, (select * from latchkey.outbox order by id desc limit ${appended}) o`,
    [messages / appended],
  )
  await client.query('commit')
  client.release()
}

/** A worker's first relay: lock one row, deliver it, delete it, commit. */
async function drainNaively(pool: pg.Pool, singles: number): Promise<number> {
  await pool.query('insert into naive_outbox (payload) select $1 from generate_series(1, $2)', [payload, singles])
  const client = await pool.connect()
  const startedAt = performance.now()
  for (;;) {
    await client.query('begin')
    const { rows } = await client.query<{ id: string }>(
      'select id, payload from naive_outbox order by id limit 1 for update skip locked',
    )
    const [row] = rows
    if (row !== undefined) await client.query('delete from naive_outbox where id = $1', [row.id])
    await client.query('commit')
    if (row === undefined) break
  }
  client.release()
  return (singles * 1_000) / (performance.now() - startedAt)
}

async function latencyOf({ pool, latchkey }: Parts, hinted: boolean): Promise<Latency> {
  const committedAt = new Map<number, number>()
  const takenMs: number[] = []
  const deliver = functionTarget(message => {
    const { n } = JSON.parse(Buffer.from(message.payload).toString()) as { n: number }
    takenMs.push(performance.now() - (committedAt.get(n) ?? 0))
  })
  const workers = createWorkers(latchkey, { only: ['relay'], relay: { targets: { '*': deliver } } })
  workers.start()
  await delay(1_200)
  const count = 400
  for (let n = 0; n < count; n++) {
    const client = await pool.connect()
    await client.query('begin')
    await latchkey.outbox.append(client, { topic: 'orders', payload: { ...payload, n } })
    await client.query('commit')
    client.release()
    committedAt.set(n, performance.now())
    if (hinted) workers.wake('relay')
    await delay(5)
  }
  const until = performance.now() + 10_000
  while (takenMs.length < count && performance.now() < until) await delay(20)
  await workers.drain()
  const sorted = takenMs.toSorted((a, b) => a - b)
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) }
}

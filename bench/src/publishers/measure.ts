/** How fast a backlog leaves the outbox for a broker, against the relay that people write first. */
import { createLatchkey, type Latchkey, singleTenant } from 'latchkey'
import { createRelay, type Target } from 'latchkey/outbox'
import { type PostgresStore, postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { fill, payload } from '../outbox/measure.ts'
import { inTurn } from '../repetitions.ts'
import { type Broker, type BrokerName, openBroker } from './brokers.ts'

export interface PublisherOrder {
  readonly url: string
  readonly broker: BrokerName
  readonly address: string
  readonly repetitions: number
  /** Messages that are published in batches: a multiple of a hundred. */
  readonly messages: number
  /** Messages that are published one by one. */
  readonly singles: number
}

/** Messages per second, by repetition. */
export interface PublisherResult {
  readonly oneByOne: readonly number[]
  readonly inBatches: readonly number[]
}

interface Parts {
  readonly pool: pg.Pool
  readonly store: PostgresStore<pg.PoolClient>
  readonly latchkey: Latchkey<pg.PoolClient, unknown>
}

const warmUp = { messages: 5_000, singles: 200 }

export async function measurePublisher(order: PublisherOrder): Promise<PublisherResult> {
  const { url, repetitions, messages, singles } = order
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const store = postgresStore({ pool })
  const parts = { pool, store, latchkey: createLatchkey({ store, scope: singleTenant, maintenance: false }) }
  await store.migrate()
  await pool.query('create table naive_outbox (id bigserial primary key, payload jsonb not null)')
  const broker = await openBroker[order.broker](order.address)
  await relayAll(parts, broker.target, warmUp.messages)
  await publishOneByOne(pool, broker, warmUp.singles)
  const rates = { oneByOne: new Array<number>(), inBatches: new Array<number>() }
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const name of inTurn(['oneByOne', 'inBatches'] as const, repetition)) {
      const rate =
        name === 'oneByOne' ? publishOneByOne(pool, broker, singles) : relayAll(parts, broker.target, messages)
      rates[name].push(await rate)
    }
  }
  await broker.close()
  await pool.end()
  return rates
}

async function relayAll({ pool, store, latchkey }: Parts, target: Target, messages: number): Promise<number> {
  await fill(pool, latchkey, messages)
  const relay = createRelay({ outbox: store.outbox, targets: { '*': target } })
  let delivered = 0
  const startedAt = performance.now()
  for (;;) {
    const turn = await relay.relayOnce()
    if (turn.kind === 'idle') break
    delivered += turn.delivered
  }
  const spentMs = performance.now() - startedAt
  if (delivered !== messages) throw new Error(`the relay delivered ${delivered} of ${messages} messages`)
  return (delivered * 1_000) / spentMs
}

/** A worker's first relay: lock one row, publish it, wait for the confirm, delete it, commit. */
async function publishOneByOne(pool: pg.Pool, broker: Broker, singles: number): Promise<number> {
  await pool.query('insert into naive_outbox (payload) select $1 from generate_series(1, $2)', [payload, singles])
  const client = await pool.connect()
  const startedAt = performance.now()
  for (let published = 0; published < singles; published++) {
    await client.query('begin')
    const { rows } = await client.query<{ id: string; payload: unknown }>(
      'select id, payload from naive_outbox order by id limit 1 for update skip locked',
    )
    await broker.publish(Buffer.from(JSON.stringify(rows[0]?.payload)))
    await client.query('delete from naive_outbox where id = $1', [rows[0]?.id])
    await client.query('commit')
  }
  client.release()
  return (singles * 1_000) / (performance.now() - startedAt)
}

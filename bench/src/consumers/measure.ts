/** How fast a backlog of NATS is booked in PostgreSQL, against the same consumer with an inbox table of its own. */
import { AckPolicy, type Consumer, jetstream, type JetStreamClient, jetstreamManager } from '@nats-io/jetstream'
import type { JetStreamManager } from '@nats-io/jetstream'
import { connect, nanos } from '@nats-io/transport-node'
import { createLatchkey, type Latchkey, singleTenant } from 'latchkey'
import { consume } from 'latchkey/consumers/nats'
import type { InboxMessage } from 'latchkey/inbox'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { inTurn } from '../repetitions.ts'
import { bookByHand, consumeByHand, type Order } from './by-hand.ts'

export interface ConsumerOrder {
  readonly url: string
  /** Of NATS. */
  readonly address: string
  readonly repetitions: number
  readonly messages: number
  /** How many messages run at the same time. */
  readonly concurrency: number
}

export interface ConsumerRun {
  /** Messages per second. */
  readonly rate: number
  /** Processor time of this process for a message. */
  readonly appUs: number
}

/** By repetition. */
export interface ConsumerResult {
  readonly byHand: readonly ConsumerRun[]
  readonly latchkey: readonly ConsumerRun[]
  /** What does not add up. */
  readonly faults: readonly string[]
}

interface Parts {
  readonly pool: pg.Pool
  readonly latchkey: Latchkey<pg.PoolClient, unknown>
  readonly manager: JetStreamManager
  readonly client: JetStreamClient
  readonly concurrency: number
}

/** Until their code is compiled. */
const warmUp = { messages: 6_000, concurrency: 8 }
const ackWaitMs = 30_000
/** Unconfirmed messages while a backlog is made. */
const publishedAtOnce = 500
const insertBooking = 'insert into ledger (order_id, amount) values ($1, $2)'

export async function measureConsumer(order: ConsumerOrder): Promise<ConsumerResult> {
  const { url, address, repetitions, messages, concurrency } = order
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const store = postgresStore({ pool })
  const connection = await connect({ servers: address })
  const manager = await jetstreamManager(connection)
  const latchkey = createLatchkey({ store, scope: singleTenant, maintenance: false })
  const parts = { pool, latchkey, manager, client: jetstream(connection), concurrency }
  await store.migrate()
  await pool.query('create table ledger (id bigserial primary key, order_id text not null, amount integer not null)')
  await pool.query('create table inbox (message_id text primary key, received_at timestamptz not null default now())')
  const measured = { byHand: new Array<ConsumerRun>(), latchkey: new Array<ConsumerRun>() }
  const faults: string[] = []
  const names = ['byHand', 'latchkey'] as const
  for (const name of names) await measureRun({ ...parts, concurrency: warmUp.concurrency }, name, warmUp.messages)
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const name of inTurn(names, repetition)) {
      const { fault, ...run } = await measureRun(parts, name, messages)
      measured[name].push(run)
      if (fault !== undefined) faults.push(fault)
    }
  }
  await connection.close()
  await pool.end()
  return { ...measured, faults }
}

type Name = 'byHand' | 'latchkey'
let runs = 0

/** From a backlog to the last acknowledgement. */
async function measureRun(
  parts: Parts,
  name: Name,
  messages: number,
): Promise<ConsumerRun & { fault: string | undefined }> {
  const { pool } = parts
  await pool.query('truncate ledger')
  const from = await backlog(parts, `run-${(runs += 1)}`, messages)
  let booked = 0
  let allBooked = () => {}
  const all = new Promise<void>(resolve => (allBooked = resolve))
  const onBooked = () => {
    booked += 1
    if (booked === messages) allBooked()
  }
  const startedAt = performance.now()
  const before = process.cpuUsage()
  const { stop } = await starters[name](parts, from, onBooked)
  await all
  // Waits for the last acknowledgements.
  await stop()
  const rate = (messages * 1_000) / (performance.now() - startedAt)
  const { user, system } = process.cpuUsage(before)
  const { num_pending: waiting, num_ack_pending: open } = await from.info()
  const { rows } = await pool.query<{ count: number }>('select count(distinct order_id)::int as count from ledger')
  const isRight = waiting + open === 0 && booked === messages && rows[0]?.count === messages
  const fault = `${name}: ${messages} messages, ${booked} bookings, ${rows[0]?.count} of different orders, ${waiting + open} not acknowledged`
  return { rate, appUs: (user + system) / messages, fault: isRight ? undefined : fault }
}

type Start = (parts: Parts, from: Consumer, onBooked: () => void) => Promise<{ stop(): Promise<unknown> }>

const starters: Readonly<Record<Name, Start>> = {
  async byHand({ pool, concurrency }, from, onBooked) {
    return consumeByHand(from, concurrency, async (id, { order, amount }) => {
      await bookByHand(pool, id, client => client.query(insertBooking, [order, amount]))
      onBooked()
    })
  },
  latchkey: ({ latchkey, concurrency }, from, onBooked) =>
    consume(
      latchkey.atomic('orders.book'),
      { from, concurrency, contentType: 'application/json' },
      async ({ tx }, { data: { order, amount } }: InboxMessage<Order>) => {
        await tx.query(insertBooking, [order, amount])
        onBooked()
      },
    ),
}

/** A stream full of messages, and a durable consumer that has seen none of them. */
async function backlog({ manager, client }: Parts, run: string, messages: number): Promise<Consumer> {
  await manager.streams.delete('ORDERS').catch(() => undefined)
  await manager.streams.add({ name: 'ORDERS', subjects: ['orders'] })
  const settings = { ack_policy: AckPolicy.Explicit, ack_wait: nanos(ackWaitMs) }
  await manager.consumers.add('ORDERS', { durable_name: 'billing', ...settings })
  for (let from = 0; from < messages; from += publishedAtOnce) {
    const numbers = Array.from({ length: Math.min(publishedAtOnce, messages - from) }, (_, index) => from + index)
    await Promise.all(
      numbers.map(number => {
        const order: Order = { order: `${run}/${number}`, amount: number }
        return client.publish('orders', JSON.stringify(order), { msgID: order.order })
      }),
    )
  }
  return client.consumers.get('ORDERS', 'billing')
}

/** A BullMQ worker whose jobs count once, also when one is added twice, stalls, or is run by two workers at once. */
import { type ConnectionOptions, DelayedError, type Job, Worker } from 'bullmq'
import pg from 'pg'
import { createLatchkey, singleTenant } from 'latchkey'
import { inbox, type InboxMessage } from 'latchkey/inbox'
import { postgresStore } from 'latchkey/stores/postgres'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 8 })
const latchkey = createLatchkey({ store: postgresStore({ pool }), scope: singleTenant })
const orders = inbox(latchkey.atomic('orders.book'), { consumer: 'billing', attemptsMax: 5, backoffMs: 200 })

export interface Order {
  /** The producer's own id: BullMQ counts its job ids anew when a queue is emptied. */
  readonly id?: string
  readonly order: string
  readonly amount: number
}

export function startWorker(connection: ConnectionOptions): Worker<Order> {
  const worker = new Worker<Order>('orders', book, {
    connection,
    // A job whose worker died comes again as often as that happens: how often it is tried is decided by its row.
    maxStalledCount: 1_000_000,
    lockDuration: 5_000,
    stalledInterval: 1_000,
  })
  // What operators have marked. The pool of connections is closed after the last turn.
  const timer = setInterval(() => void orders.redriven(bookOrder).catch(console.error), 1_000)
  worker.on('closing', () => clearInterval(timer))
  return worker
}

async function book(job: Job<Order>, token?: string): Promise<void> {
  const message = { source: job.queueName, id: job.data.id, type: job.name, data: job.data, position: job.id }
  const result = await orders.receive(message, bookOrder)
  if (result.kind !== 'retry') return
  // Delayed, and not failed: BullMQ counts no attempt, and the job is not lost after the last one.
  await job.moveToDelayed(Date.now() + result.afterMs, token)
  throw new DelayedError()
}

async function bookOrder({ tx }: { tx: pg.PoolClient }, { data }: InboxMessage<Order>): Promise<void> {
  await tx.query('insert into ledger (order_id, amount) values ($1, $2)', [data.order, data.amount])
}

export async function close(worker: Worker): Promise<void> {
  await worker.close()
  await latchkey.close()
  await pool.end()
}

/** What the story does to the broker and the ledger, and what it sees of them. */
import { DiscardPolicy } from '@nats-io/jetstream'
import { tokens } from '../api.ts'
import { openBroker, stream } from '../ledger/broker.ts'
import type { Booking, Payment } from '../shop-database.ts'
import type { Client, Wish } from './client.ts'
import type { Stage } from './stage.ts'

export interface Books {
  /** The broker stores nothing more, as if its disk were full. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /** The ledger waits between the next booking and its acknowledgement: time for a kill. */
  delayAcknowledgement(): Promise<void>
  /** kill -9: no shutdown code runs. */
  killLedger(): Promise<void>
  bookingsOf(client: Client, wish: Wish): Promise<number>
  /** Of all accounts: what was paid, and what is booked. */
  totals(client: Client): Promise<{ paid: number; booked: number }>
  /** Deliveries so far, and messages that are not acknowledged. */
  deliveries(): Promise<{ made: number; open: number }>
  close(): Promise<void>
}

/** Longer than the ledger lives. */
const lateAck = { kind: 'late-ack', ms: 30_000, messages: 1 }
const answerWithinMs = 5_000

export async function openBooks(broker: string, stage: Pick<Stage, 'ledgerUrl'>): Promise<Books> {
  const { client: jetstream, consumer, close } = await openBroker(broker)
  const { streams } = await jetstream.jetstreamManager()
  const limit = async (max: { max_bytes: number; discard: DiscardPolicy }) => {
    const { config } = await streams.info(stream)
    await streams.update(stream, { ...config, ...max })
  }
  const ask = async (path: string, request: RequestInit = {}) => {
    const signal = AbortSignal.timeout(answerWithinMs)
    const response = await fetch(stage.ledgerUrl + path, { ...request, signal })
    if (!response.ok) throw new Error(`the ledger answered ${path} with ${response.status}`)
    return response.text()
  }
  return {
    refuse: () => limit({ max_bytes: 1, discard: DiscardPolicy.New }),
    accept: () => limit({ max_bytes: -1, discard: DiscardPolicy.Old }),
    delayAcknowledgement: async () => void (await ask('/fault', { method: 'PUT', body: JSON.stringify(lateAck) })),
    killLedger: async () => void process.kill(Number(await ask('/pid')), 'SIGKILL'),
    async bookingsOf(client, { account, amount }) {
      const all = await client.read<Booking[]>(account, '/bookings')
      return all.filter(booking => booking.amount === amount).length
    },
    async totals(client) {
      const all = await Promise.all(
        Object.values(tokens).map(async account => ({
          payments: await client.read<Payment[]>(account, '/payments'),
          payouts: await client.read<Payment[]>(account, '/payouts'),
          bookings: await client.read<Booking[]>(account, '/bookings'),
        })),
      )
      const paid = all.flatMap(({ payments, payouts }) => [...payments, ...payouts].filter(({ charge }) => charge))
      return { paid: paid.length, booked: all.flatMap(({ bookings }) => bookings).length }
    },
    async deliveries() {
      const { delivered, num_pending: waiting, num_ack_pending: delivering } = await (await consumer()).info()
      return { made: delivered.consumer_seq, open: waiting + delivering }
    },
    close,
  }
}

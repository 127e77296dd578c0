/** The consumer that people write: an inbox table, and its insert in the transaction of the booking. */
import type { Consumer, JsMsg } from '@nats-io/jetstream'
import type pg from 'pg'

export interface Order {
  readonly order: string
  readonly amount: number
}

export async function consumeByHand(
  from: Consumer,
  concurrency: number,
  book: (id: string, order: Order) => Promise<void>,
): Promise<{ stop(): Promise<void> }> {
  const messages = await from.consume({ max_messages: concurrency })
  const underWay = new Set<Promise<void>>()
  const run = async (message: JsMsg) => {
    await book(message.headers?.get('Nats-Msg-Id') ?? '', message.json<Order>())
    await message.ackAck()
  }
  async function pull(): Promise<void> {
    for await (const message of messages) {
      const running = run(message).finally(() => underWay.delete(running))
      underWay.add(running)
      if (underWay.size >= concurrency) await Promise.race(underWay)
    }
  }
  const pulling = pull()
  return {
    async stop() {
      messages.stop()
      await pulling
      await Promise.all(underWay)
    },
  }
}

export async function bookByHand(
  pool: pg.Pool,
  id: string,
  book: (client: pg.PoolClient) => Promise<unknown>,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rowCount } = await client.query('insert into inbox (message_id) values ($1) on conflict do nothing', [id])
    if (rowCount === 1) await book(client)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

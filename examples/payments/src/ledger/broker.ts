/** The stream between the shop and its ledger, at the NATS given by --broker. */
import { AckPolicy, type Consumer, type JetStreamClient, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, nanos, type NatsConnection } from '@nats-io/transport-node'
import { BadInput } from '../flags.ts'

export const stream = 'PAYMENTS'
export const subject = 'payments.receipts'
/** Also the scope of its keys, so it must not change. */
const durable = 'ledger'

/** Longer than the relay's longest gap between two attempts, so that no receipt is stored twice. */
const duplicateWindowMs = 600_000
/** Short, for a playground: how soon the receipt of a ledger that was killed comes again. */
const ackWaitMs = 5_000
const connectTimeoutMs = 5_000

export interface Broker {
  readonly client: JetStreamClient
  /** One line for the person who started the playground. */
  readonly name: string
  /** Creates what is missing, and changes nothing else. */
  consumer(): Promise<Consumer>
  close(): Promise<void>
}

export async function openBroker(url: string): Promise<Broker> {
  const { host, username, password } = new URL(url)
  const user = username === '' ? {} : { user: username, pass: password }
  const name = `nats://${host}`
  let connection: NatsConnection | undefined
  try {
    // A broker that is gone for a while is found again.
    const waiting = { timeout: connectTimeoutMs, maxReconnectAttempts: -1 }
    connection = await connect({ servers: host, ...user, ...waiting })
    const { streams, consumers } = await jetstreamManager(connection)
    await streams.add({ name: stream, subjects: [subject], duplicate_window: nanos(duplicateWindowMs) })
    const client = jetstream(connection)
    return {
      client,
      name,
      async consumer() {
        const settings = { ack_policy: AckPolicy.Explicit, ack_wait: nanos(ackWaitMs) }
        await consumers.add(stream, { durable_name: durable, ...settings })
        return client.consumers.get(stream, durable)
      },
      close: () => connection?.close() ?? Promise.resolve(),
    }
  } catch (error) {
    await connection?.close()
    throw new BadInput(
      `the broker at ${name} cannot be used: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

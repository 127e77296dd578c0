import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, nanos, type NatsConnection } from '@nats-io/transport-node'
import { consume } from '../../../src/consumers/nats/index.ts'
import { closeAfter, common, stopAndClose, type TestBroker } from './broker.ts'

const durable = 'billing'

export const nats: TestBroker = {
  publish: (url, { name, leaseMs }, ids) =>
    connected(url, async connection => {
      const manager = await jetstreamManager(connection)
      await manager.streams.add({ name, subjects: [name] })
      await manager.consumers.add(name, {
        ...{ durable_name: durable, ack_policy: AckPolicy.Explicit, ack_wait: nanos(leaseMs) },
      })
      for (const id of ids) {
        const all = headers()
        all.set('Nats-Msg-Id', id)
        await jetstream(connection).publish(name, id, { headers: all })
      }
    }),
  waiting: (url, { name }) =>
    connected(url, async connection => {
      const manager = await jetstreamManager(connection)
      const { num_pending: pending, num_ack_pending: open } = await manager.consumers.info(name, durable)
      return pending + open
    }),
  async consume(url, { name }, { operation, handler, backoffMs }) {
    const connection = await connect({ servers: url })
    const from = await jetstream(connection).consumers.get(name, durable)
    const subscription = await consume(operation, { ...common, backoffMs, from }, handler)
    return stopAndClose(subscription, () => connection.close())
  },
}

async function connected<T>(url: string, run: (connection: NatsConnection) => Promise<T>): Promise<T> {
  const connection = await connect({ servers: url })
  return closeAfter(run(connection), () => connection.close())
}

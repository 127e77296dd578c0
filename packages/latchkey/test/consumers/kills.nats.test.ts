import { jetstream, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, nanos, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll } from 'vitest'
import { describeNats } from '../../../../test/servers/nats/describe-nats.ts'
import { itSurvivesKills, type KilledBroker } from './kills.cases.ts'

describeNats('consumers of NATS that are killed', own => {
  let connection: NatsConnection
  let manager: JetStreamManager
  beforeAll(async () => {
    connection = await connect({ servers: own.server.url })
    manager = await jetstreamManager(connection)
  })
  afterAll(() => connection.close())

  const broker = (): KilledBroker => ({
    name: 'nats',
    url: own.server.url,
    async publish(kind, ids) {
      await manager.streams.delete('ORDERS').catch(() => undefined)
      await manager.streams.add({ name: 'ORDERS', subjects: ['orders'] })
      // At least the lease, which an atomic operation does not choose.
      const ackWaitMs = kind === 'atomic' ? 30_000 : 1_000
      const config = { durable_name: kind, ack_policy: 'explicit', ack_wait: nanos(ackWaitMs) }
      await manager.consumers.add('ORDERS', config as never)
      for (const id of ids) {
        const all = headers()
        all.set('Nats-Msg-Id', id)
        await jetstream(connection).publish('orders', id, { headers: all })
      }
    },
    async waiting(kind) {
      const { num_pending: pending, num_ack_pending: open } = await manager.consumers.info('ORDERS', kind)
      return pending + open
    },
  })
  itSurvivesKills(broker)
})

import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import { afterAll, beforeAll } from 'vitest'
import { describeRabbitmq } from '../../../../test/servers/rabbitmq/describe-rabbitmq.ts'
import { itSurvivesKills, type KilledBroker, type Kind } from './kills.cases.ts'

describeRabbitmq('consumers of RabbitMQ that are killed', server => {
  let connection: ChannelModel
  let channel: ConfirmChannel
  beforeAll(async () => {
    connection = await connect(server.url)
    channel = await connection.createConfirmChannel()
  })
  afterAll(() => connection.close())

  const queuesOf = (kind: Kind) => [`killed-${kind}`, `killed-${kind}.wait.100`, `killed-${kind}.wait.1000`]
  const ready = async (kind: Kind) => {
    const counts = await Promise.all(queuesOf(kind).map(queue => channel.checkQueue(queue)))
    return counts.reduce((sum, { messageCount }) => sum + messageCount, 0)
  }

  const broker = (): KilledBroker => ({
    name: 'rabbitmq',
    url: server.url,
    async publish(kind, ids) {
      const queue = `killed-${kind}`
      await channel.assertQueue(queue, { durable: true })
      for (const messageId of ids) channel.sendToQueue(queue, Buffer.from(messageId), { messageId, persistent: true })
      await channel.waitForConfirms()
    },
    async waiting(kind) {
      const before = await ready(kind)
      if (before > 0) return before
      // A server does not tell how many are delivered and not acknowledged. What took so long would be an error.
      await new Promise(resolve => setTimeout(resolve, 1_500))
      return ready(kind)
    },
  })
  itSurvivesKills(broker)
})

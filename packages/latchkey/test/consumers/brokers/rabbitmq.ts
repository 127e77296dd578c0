import { type ConfirmChannel, connect } from 'amqplib'
import { consume } from '../../../src/consumers/rabbitmq/index.ts'
import { closeAfter, common, stopAndClose, type TestBroker } from './broker.ts'

const waitMs = [100, 1_000]

export const rabbitmq: TestBroker = {
  publish: (url, { name }, ids) =>
    connected(url, async channel => {
      await channel.assertQueue(name, { durable: true })
      for (const messageId of ids) channel.sendToQueue(name, Buffer.from(messageId), { messageId, persistent: true })
      await channel.waitForConfirms()
    }),
  waiting: (url, { name }) =>
    connected(url, async channel => {
      const before = await ready(channel, name)
      if (before > 0) return before
      // A server does not tell how many are delivered and not acknowledged. What took so long would be an error.
      await new Promise(resolve => setTimeout(resolve, 1_500))
      return ready(channel, name)
    }),
  async consume(url, { name }, { operation, handler, backoffMs }) {
    const connection = await connect(url)
    const subscription = await consume(operation, { ...common, backoffMs, connection, queue: name, waitMs }, handler)
    return stopAndClose(subscription, () => connection.close())
  },
}

async function ready(channel: ConfirmChannel, name: string): Promise<number> {
  const queues = [name, ...waitMs.map(ms => `${name}.wait.${ms}`)]
  const counts = await Promise.all(queues.map(queue => channel.checkQueue(queue)))
  return counts.reduce((sum, { messageCount }) => sum + messageCount, 0)
}

async function connected<T>(url: string, run: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
  const connection = await connect(url)
  return closeAfter(run(await connection.createConfirmChannel()), () => connection.close())
}

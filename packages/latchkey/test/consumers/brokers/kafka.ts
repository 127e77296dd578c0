import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { consume } from '../../../src/consumers/kafka/index.ts'
import { closeAfter, common, stopAndClose, type TestBroker } from './broker.ts'
import { kafkaLag } from './kafka-lag.ts'

/** When a member comes or goes, the brokers of the tests wait for nearly as long as a session lasts, and for three seconds at first. */
const session = { sessionTimeout: 4_000, heartbeatInterval: 200, maxWaitTimeInMs: 200 }
/**
 * If they get no processor for a second, they forget members that wait to join, and never answer them. This and five seconds is how long the client waits: 65 s by
 * default, which was longer than a test did when it happened twice.
 */
const group = { ...session, rebalanceTimeout: 4_000 }
/** They also elect members that are dead, so that the others must join once more: while they wait for each other, and not up to ten seconds later. */
const retry = { initialRetryTime: 100, maxRetryTime: 300, retries: 100 }

/** Its URL is a list of brokers. */
const clientOf = (url: string) =>
  new Kafka({ brokers: url.split(','), logLevel: logLevel.NOTHING, requestTimeout: 10_000, retry })

export const kafka: TestBroker = {
  async publish(url, { name }, ids) {
    const producer = clientOf(url).producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    // By its key, a message has a partition.
    const messages = ids.map(id => ({ key: id, value: id, headers: { 'message-id': id } }))
    await closeAfter(producer.send({ topic: name, messages }), () => producer.disconnect())
  },
  waiting: (url, { name }) => kafkaLag(clientOf(url), name),
  async consume(url, { name }, { operation, handler, backoffMs }) {
    const from = clientOf(url).consumer({ groupId: name, ...group })
    await from.connect()
    await from.subscribe({ topics: [name], fromBeginning: true })
    const subscription = await consume(operation, { ...common, backoffMs, from, consumer: name }, handler)
    return stopAndClose(subscription, () => from.disconnect())
  },
}

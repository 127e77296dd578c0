/** A process that consumes from a broker, and kills itself with SIGKILL when it has come by so many moments as it is told. */
import { jetstream } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { connect as connectRabbitmq } from 'amqplib'
import { Kafka, logLevel } from 'kafkajs'
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import { consume as consumeKafka } from 'latchkey/consumers/kafka'
import { consume as consumeNats } from 'latchkey/consumers/nats'
import { consume as consumeRabbitmq } from 'latchkey/consumers/rabbitmq'
import type { InboxMessage } from 'latchkey/inbox'
import { openPlace } from '../processes/database.ts'

export interface ConsumerProcessArgument {
  readonly broker: 'nats' | 'rabbitmq' | 'kafka'
  /** Of Kafka: those of its brokers. */
  readonly url: string
  readonly place: string
  /** Also the name of the durable consumer, or the end of that of the queue, the topic and the group. */
  readonly kind: 'atomic' | 'hold' | 'rerun'
  /** Undefined: it lives until it is killed. */
  readonly diesAt: number | undefined
}

const { broker, url, place: name, kind, diesAt }: ConsumerProcessArgument = JSON.parse(process.argv[2] ?? '{}')
let moments = 0
function arrive(): void {
  moments += 1
  if (moments === diesAt) process.kill(process.pid, 'SIGKILL')
}
// Where the engine reports its moments to a test: before and after every commit.
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), arrive)

const place = await openPlace(name)
const latchkey = createLatchkey({
  store: place.store,
  scope: singleTenant,
  telemetry: silentTelemetry,
  maintenance: false,
})
const common = { backoffMs: 50, onUnknown: 'park', attemptsMax: 100, concurrency: 4 } as const
const labelOf = ({ id }: InboxMessage) => `${broker}/${kind}/${id}`

const atomic = latchkey.atomic('book.inside')
const guarded = latchkey.guarded('book.outside', { onFailure: kind === 'hold' ? 'hold' : 'rerun', leaseMs: 1_000 })
async function bookInside({ tx }: { tx: unknown }, message: InboxMessage): Promise<void> {
  await place.insert(tx, labelOf(message))
  arrive()
}
async function bookOutside(_: unknown, message: InboxMessage): Promise<void> {
  await place.countExecution(labelOf(message))
  arrive()
}

if (broker === 'nats') {
  const from = await jetstream(await connectNats({ servers: url })).consumers.get('ORDERS', kind)
  if (kind === 'atomic') await consumeNats(atomic, { ...common, from }, bookInside)
  else await consumeNats(guarded, { ...common, from }, bookOutside)
} else if (broker === 'kafka') {
  const consumer = `killed-${kind}`
  const from = new Kafka({ brokers: url.split(','), logLevel: logLevel.NOTHING }).consumer({
    ...{ groupId: consumer, sessionTimeout: 4_000, heartbeatInterval: 200, maxWaitTimeInMs: 200 },
  })
  await from.connect()
  await from.subscribe({ topics: [consumer], fromBeginning: true })
  if (kind === 'atomic') await consumeKafka(atomic, { ...common, from, consumer }, bookInside)
  else await consumeKafka(guarded, { ...common, from, consumer }, bookOutside)
} else {
  const options = { ...common, connection: await connectRabbitmq(url), queue: `killed-${kind}`, waitMs: [100, 1_000] }
  if (kind === 'atomic') await consumeRabbitmq(atomic, options, bookInside)
  else await consumeRabbitmq(guarded, options, bookOutside)
}
// The test has ended, so nothing else would end this process.
process.once('disconnect', () => process.exit(1))

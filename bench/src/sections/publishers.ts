/** The outbox to brokers: how fast a backlog leaves. */
import { findKafka, startKafka } from '../../../test/servers/kafka/kafka-server.ts'
import { findNats, startNats } from '../../../test/servers/nats/nats-server.ts'
import { findRabbitmq, startRabbitmq } from '../../../test/servers/rabbitmq/rabbitmq-server.ts'
import type { Context } from '../context.ts'
import { askApart } from '../machine/child.ts'
import { createDatabaseOn } from '../machine/database.ts'
import { type BrokerName, brokerNames } from '../publishers/brokers.ts'
import type { PublisherOrder, PublisherResult } from '../publishers/measure.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { figure, pairwise } from '../statistics.ts'

interface Server {
  readonly title: string
  find(): { kind: 'found' } | { kind: 'missing'; why: string }
  start(): Promise<{ readonly address: string; stop(): Promise<void> }>
}

const servers: Readonly<Record<BrokerName, Server>> = {
  nats: {
    title: 'NATS JetStream',
    find: findNats,
    start: async () => withAddress(await startNats(), ({ url }) => url),
  },
  rabbitmq: {
    title: 'RabbitMQ',
    find: findRabbitmq,
    start: async () => withAddress(await startRabbitmq(), ({ url }) => url),
  },
  kafka: {
    title: 'Kafka, brokers in memory',
    find: findKafka,
    start: async () => withAddress(await startKafka(), ({ brokers }) => brokers.join(',')),
  },
}

export const publishers: Section = {
  name: 'publishers',
  partOf: 'consumers',
  what: 'the relay to NATS, RabbitMQ and Kafka in batches over one that publishes message by message',
  async run(context) {
    const measured = new Map<BrokerName, PublisherResult>()
    const faults: string[] = []
    for (const name of brokerNames) {
      const found = servers[name].find()
      if (found.kind === 'missing') faults.push(`${name}: ${found.why}; \`npm test\` installs it where it can`)
      else measured.set(name, await measure(context, name))
    }
    return resultOf(measured, faults)
  },
}

async function measure(
  { postgres, programs, quick, repetitions }: Context,
  broker: BrokerName,
): Promise<PublisherResult> {
  const server = await servers[broker].start()
  const database = await createDatabaseOn((await postgres()).url)
  const size = quick ? { messages: 2_000, singles: 200 } : { messages: 20_000, singles: 1_000 }
  const order: PublisherOrder = { url: database.url, broker, address: server.address, repetitions, ...size }
  try {
    return await askApart<PublisherResult>(programs.publishers, order)
  } finally {
    await database.drop()
    await server.stop()
  }
}

function resultOf(measured: ReadonlyMap<BrokerName, PublisherResult>, faults: readonly string[]): SectionResult {
  const all = [...measured].map(([name, rates]) => ({
    name,
    ...rates,
    ratios: pairwise(rates.inBatches, rates.oneByOne),
  }))
  const table = markdownTable(
    ['broker', 'one by one, messages/s', 'Latchkey, batches of 200, messages/s', 'ratio (min to max)'],
    all.map(({ name, oneByOne, inBatches, ratios }) => [
      ...[servers[name].title, withSpread(oneByOne, 0), withSpread(inBatches, 0), withSpread(ratios, 1)],
    ]),
  )
  const figures = all.map(({ name, ratios }) => [
    `${name} in batches over one by one`,
    figure(ratios, '×', `outbox relay to ${servers[name].title} in batches over one by one`),
  ])
  return {
    markdown: ['### Outbox: a backlog, published to a broker', table].join('\n\n'),
    figures: Object.fromEntries(figures),
    faults,
    data: Object.fromEntries(measured),
  }
}

function withAddress<S extends { stop(): Promise<void> }>(
  server: S,
  addressOf: (server: S) => string,
): { address: string; stop(): Promise<void> } {
  return { address: addressOf(server), stop: () => server.stop() }
}

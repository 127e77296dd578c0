import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { type ISocketFactory, Kafka, logLevel, Partitioners } from 'kafkajs'
import { beforeEach, describe, expect, it } from 'vitest'
import { describeKafka } from '../../../../../test/servers/kafka/describe-kafka.ts'
import { findKafka } from '../../../../../test/servers/kafka/kafka-server.ts'
import { drain, type OpenBroker, order, type StoredMessage } from '../../../test/outbox/broker-fixture.ts'
import { describeBrokerCases } from '../../../test/outbox/broker.cases.ts'
import { openFixture, type OutboxFixture } from '../../../test/outbox/fixture.ts'
import { kafkaTarget } from './index.ts'

type Fault = { readonly word: string; readonly does: 'lose request' | 'lose reply' | 'refuse' }

/** The broker's error for a message that is larger than it takes. */
const messageTooLarge = 10

describeKafka('a topic of Kafka', own => {
  let topics = 0

  /** kcat reads what is there, and ends. Messages of one key are in one partition, so that their order is that of their offsets. */
  async function read(topic: string): Promise<StoredMessage[]> {
    const found = findKafka()
    if (found.kind === 'missing') throw new Error(found.why)
    const args = ['-b', own.server.brokers.join(','), '-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-J']
    const { stdout } = await promisify(execFile)(found.path, args, { timeout: 30_000 })
    const records = stdout
      .trim()
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line) as KcatRecord)
    return records
      .toSorted((a, b) => a.partition - b.partition || a.offset - b.offset)
      .map(({ headers, payload }) => {
        const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? '']] : []))
        const all = Object.fromEntries(pairs) as Record<string, string>
        return { id: all['message-id'] ?? '', text: payload, headers: all }
      })
  }

  interface KafkaBroker extends OpenBroker {
    readonly topic: string
  }

  async function openBroker(): Promise<KafkaBroker> {
    const topic = `orders-${(topics += 1)}`
    const faults: Fault[] = []
    const refusedIds = new Set<string>()
    const kafka = new Kafka({
      brokers: [...own.server.brokers],
      socketFactory: faultySockets(topic, faults),
      logLevel: logLevel.NOTHING,
    })
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, retry: { retries: 0 } })
    await producer.connect()
    // The first request creates the topic, and is told to try again.
    await expect
      .poll(() => producer.send({ topic, messages: [] }).then(() => 'there', String), { timeout: 10_000 })
      .toBe('there')
    return {
      topic,
      target: kafkaTarget({ producer, topic }),
      // The broker behind the wire does not know that it has refused them.
      stored: async () => (await read(topic)).filter(({ id }) => !refusedIds.has(id)),
      cut: (word, lost) => void faults.push({ word, does: `lose ${lost}` }),
      refused(id) {
        refusedIds.add(id)
        faults.push({ word: `word-${id}.`, does: 'refuse' })
        return { message: order(id), cause: 'MESSAGE_TOO_LARGE' }
      },
      close: () => producer.disconnect(),
    }
  }

  describeBrokerCases({ open: openBroker, copies: 2 })

  describe('by itself', () => {
    let fixture: OutboxFixture
    let broker: KafkaBroker
    beforeEach(async () => {
      fixture = await openFixture()
      broker = await openBroker()
      return async () => {
        await broker.close()
        await fixture.close()
      }
    })

    it('sends messages of many aggregates in few requests', async () => {
      await fixture.append(...Array.from({ length: 200 }, (_, index) => order(`m${index}`, { aggregate: `a${index}` })))
      let requests = 0
      const kafka = new Kafka({ brokers: [...own.server.brokers], logLevel: logLevel.NOTHING })
      const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
      await producer.connect()
      const sendBatch: typeof producer.sendBatch = batch => ((requests += 1), producer.sendBatch(batch))
      await drain(fixture, kafkaTarget({ producer: { sendBatch }, topic: broker.topic }))
      await producer.disconnect()
      expect(await broker.stored()).toHaveLength(200)
      expect(requests).toBeLessThanOrEqual(fixture.store.outbox.lanes)
    })
  })
})

it('refuses wrong options at construction', () => {
  expect(() => kafkaTarget({} as never)).toThrow(/needs producer/)
  expect(() => kafkaTarget({ producer: {} } as never)).toThrow(/sendBatch/)
})

interface KcatRecord {
  readonly partition: number
  readonly offset: number
  readonly headers: readonly string[]
  readonly payload: string
}

/** The brokers' own addresses are in their answers, so that a proxy would be passed by: the faults are in the client's sockets. */
function faultySockets(topic: string, faults: Fault[]): ISocketFactory {
  return ({ host, port, onConnect }) => {
    const socket = connect({ host, port }, onConnect)
    /** By the id of the request: several are under way at once. */
    const pending = new Map<number, Fault>()
    let received = Buffer.alloc(0)
    const { write, emit } = socket
    socket.write = (data: Uint8Array, ...rest: never[]): boolean => {
      const request = Buffer.from(data)
      const at = faults.findIndex(({ word }) => request.includes(word))
      const fault = faults[at]
      // A message that is refused is refused as often as it is sent.
      if (fault !== undefined && fault.does !== 'refuse') faults.splice(at, 1)
      if (fault?.does === 'lose request') {
        socket.destroy(new Error('the wire was cut'))
        return false
      }
      if (fault !== undefined) pending.set(request.readInt32BE(requestIdAt), fault)
      return Reflect.apply(write, socket, [data, ...rest])
    }
    socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event !== 'data') return Reflect.apply(emit, socket, [event, ...args])
      received = Buffer.concat([received, args[0] as Buffer])
      for (let answer = firstAnswer(received); answer !== undefined; answer = firstAnswer(received)) {
        received = received.subarray(answer.byteLength)
        const fault = pending.get(answer.readInt32BE(answerIdAt))
        if (fault?.does === 'lose reply') return Boolean(socket.destroy(new Error('the wire was cut')))
        if (fault?.does === 'refuse') refuse(answer, topic)
        Reflect.apply(emit, socket, [event, answer])
      }
      return true
    }
    return socket
  }
}

/** Behind the length, the kind of request and its version. */
const requestIdAt = 8
/** Behind the length. */
const answerIdAt = 4

/** Undefined: it has not arrived in full. */
function firstAnswer(received: Buffer): Buffer | undefined {
  const end = received.byteLength < 4 ? Number.POSITIVE_INFINITY : received.readInt32BE(0) + 4
  return end > received.byteLength ? undefined : Buffer.from(received.subarray(0, end))
}

/** An error at the first partition of the topic: name, count of partitions, partition, error. */
function refuse(answer: Buffer, topic: string): void {
  answer.writeInt16BE(messageTooLarge, answer.indexOf(topic) + topic.length + 8)
}

/** Messages that are delivered in one turn of the event loop leave in one request. */
import { atEndOfTurn } from '../../ports/clock.ts'
import type { KafkaProducer, KafkaRecord, KafkaTopicMessages } from './driver.ts'

export interface Batches {
  /** Resolves when all replicas in sync have it. */
  send(topic: string, record: KafkaRecord): Promise<void>
}

interface Waiting {
  readonly topic: string
  readonly record: KafkaRecord
  resolve(): void
  reject(error: unknown): void
}

/** Half of what a broker takes by default as one batch of a partition, headers included. */
const bytesMax = 500_000

/** `mayBeOther`: whether the error may be about one message of a batch only. */
export function openBatches(producer: KafkaProducer, mayBeOther: (error: unknown) => boolean): Batches {
  let waiting: Waiting[] = []

  async function sendAll(batch: readonly Waiting[]): Promise<void> {
    try {
      // Minus one: all replicas that are in sync.
      await producer.sendBatch({ acks: -1, topicMessages: byTopic(batch) })
      for (const each of batch) each.resolve()
    } catch (error) {
      if (batch.length > 1 && mayBeOther(error)) return void batch.map(each => sendAll([each]))
      for (const each of batch) each.reject(error)
    }
  }

  const flush = {
    endOfTurn() {
      const due = waiting
      waiting = []
      for (const batch of bySize(due)) void sendAll(batch)
    },
  }

  return {
    send: (topic, record) =>
      new Promise((resolve, reject) => {
        if (waiting.push({ topic, record, resolve, reject }) === 1) atEndOfTurn(flush)
      }),
  }
}

function bySize(all: readonly Waiting[]): Waiting[][] {
  const batches: Waiting[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const each of all) {
    bytes += each.record.value.byteLength
    if (bytes > bytesMax) {
      batches.push([])
      bytes = each.record.value.byteLength
    }
    batches.at(-1)?.push(each)
  }
  return batches
}

function byTopic(batch: readonly Waiting[]): KafkaTopicMessages[] {
  const topics = new Map<string, KafkaRecord[]>()
  for (const { topic, record } of batch) {
    const records = topics.get(topic)
    if (records === undefined) topics.set(topic, [record])
    else records.push(record)
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }))
}

/** Delivers to a topic of Kafka, keyed by aggregate. Kafka recognises no duplicates: the consumer does, by the header `message-id`. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { isError, misconfigured } from '../../ports/errors.ts'
import { callable, count, either, having, text } from '../../ports/option-kinds.ts'
import type { Message } from '../../ports/outbox.ts'
import type { Target } from '../../ports/target.ts'
import { errorCode } from '../attempts.ts'
import { type Address, addressOf, concurrencyDefault, headersOf } from '../broker-message.ts'
import { openBatches } from './batches.ts'
import type { KafkaProducer, KafkaRecord } from './driver.ts'

export interface KafkaTargetOptions {
  /** `kafka.producer(…)` of `kafkajs`, connected. */
  readonly producer: KafkaProducer
  /** Default: the topic of the message. */
  readonly topic?: Address
  /** How many messages are unconfirmed at once, each of another aggregate. Default 200. */
  readonly concurrency?: number
}

const kafkaTargetChecks: ChecksOf<KafkaTargetOptions> = {
  producer: having('a producer of kafkajs', 'sendBatch'),
  topic: either(text, callable),
  concurrency: count,
}

const reservedHeader = /^message-id$/i
/** The broker will refuse the same message again. */
const refusingTypes: ReadonlySet<string> = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'POLICY_VIOLATION',
])

export function kafkaTarget(options: KafkaTargetOptions): Target {
  checkOptions('kafkaTarget', options, kafkaTargetChecks)
  const { producer, topic, concurrency = concurrencyDefault } = options
  if (producer === undefined) throw misconfigured('kafkaTarget needs producer: kafka.producer(), connected')
  const batches = openBatches(producer, error => refusalOf(error) !== undefined)
  return {
    name: 'Kafka',
    concurrency,
    async deliver(message) {
      try {
        await batches.send(addressOf(topic, message), recordOf(message))
        return { kind: 'delivered' }
      } catch (error) {
        const refusal = refusalOf(error)
        if (refusal !== undefined) return { kind: 'refused', error: refusal }
        return { kind: 'failed', error: typeOf(error) ?? errorCode(error) }
      }
    },
  }
}

/** Without an aggregate there is no key: the client spreads such messages over the partitions. */
function recordOf(message: Message): KafkaRecord {
  const { aggregate = null, payload, dedupId } = message
  const { contentType, headers } = headersOf(message, reservedHeader)
  return {
    key: aggregate,
    value: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
    headers: { ...Object.fromEntries(headers), 'content-type': contentType, 'message-id': dedupId },
  }
}

function refusalOf(error: unknown): string | undefined {
  const type = typeOf(error)
  return type !== undefined && refusingTypes.has(type) ? type : undefined
}

/** The protocol's name of the error. */
function typeOf(error: unknown): string | undefined {
  const type: unknown = isError(error) ? Reflect.get(error, 'type') : undefined
  return typeof type === 'string' ? type : undefined
}

/** `consume`: topics of Kafka, whose messages are requests of an operation. */
import type { Execution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import type { InboxHandler } from '../../inbox/index.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having } from '../../ports/option-kinds.ts'
import { startConsuming } from '../consuming.ts'
import type { InputOptions, Subscription } from '../options.ts'
import { type Consumed, receiverOf } from '../receiver.ts'
import type { KafkaConsumer } from './driver.ts'
import { inboxOptionsOf, kafkaCommonChecks, type KafkaCommonOptions } from './options.ts'
import { runBatch } from './partition.ts'
import { supervise } from './supervise.ts'

export interface KafkaConsumeOptions extends KafkaCommonOptions {
  /**
   * `kafka.consumer({ groupId })` of `kafkajs`, connected and subscribed, not running. Its `sessionTimeout` must be at least the operation's `leaseMs`:
   * both are 30 s by default.
   */
  readonly from: KafkaConsumer
  /** The scope of its keys: the name of the consumer group. Once messages were received, it must not change. */
  readonly consumer: string
}

export interface KafkaDefinedConsumeOptions<Input> extends KafkaConsumeOptions, InputOptions<Input> {}

/** Resolves when the consumer has joined its group. */
export async function consume<X extends Execution, C, Data>(
  operation: Operation<X, C>,
  options: KafkaConsumeOptions,
  handler: InboxHandler<X, Data>,
): Promise<Subscription>
export async function consume<Input, C>(
  operation: DefinedOperation<Input, C>,
  options: KafkaDefinedConsumeOptions<Input>,
): Promise<Subscription>
export async function consume<X extends Execution, Input, C>(
  operation: Consumed<X, Input, C>,
  options: KafkaConsumeOptions | KafkaDefinedConsumeOptions<Input>,
  handler?: InboxHandler<X>,
): Promise<Subscription> {
  const owner = `consume ${operation.name}`
  checkOptions(owner, options, kafkaChecks)
  const { from, consumer, concurrency = 1, identity, contentType, onUnknown, ...inboxOptions } = options
  if (from === undefined || consumer === undefined) {
    throw misconfigured(
      `${owner} needs from: kafka.consumer({ groupId: 'billing' }), connected and subscribed, and consumer: 'billing'`,
    )
  }
  const receiver = receiverOf(operation, { ...inboxOptions, ...inboxOptionsOf(onUnknown), consumer }, handler)
  const consuming = startConsuming(receiver, concurrency)
  const partitions = { from, consuming, receiver, envelope: { identity, contentType } }
  const supervised = await supervise(partitions, {
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: concurrency,
    eachBatch: payload => runBatch(partitions, payload),
  })
  return {
    async stop(given) {
      const { drained } = await consuming.stop(given)
      await supervised.end(drained)
      return { drained }
    },
  }
}

const kafkaChecks: ChecksOf<KafkaDefinedConsumeOptions<unknown>> = {
  ...kafkaCommonChecks,
  from: having('a consumer of kafkajs', 'connect', 'run', 'stop', 'commitOffsets'),
}

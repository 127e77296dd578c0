/** `consume`: topics of Kafka on `@platformatic/kafka`, whose messages are requests of an operation. */
import type { Execution } from '../../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../../engine/operation.ts'
import type { InboxHandler } from '../../../inbox/index.ts'
import { checkOptions, type ChecksOf } from '../../../ports/check-options.ts'
import { misconfigured } from '../../../ports/errors.ts'
import { having, listOf, text } from '../../../ports/option-kinds.ts'
import { endsWithin, leaveMsMax, startConsuming } from '../../consuming.ts'
import type { InputOptions, Subscription } from '../../options.ts'
import { type Consumed, receiverOf } from '../../receiver.ts'
import { inboxOptionsOf, kafkaCommonChecks, type KafkaCommonOptions } from '../options.ts'
import type { PlatformaticConsumer } from './driver.ts'
import { openStream, readAgainAndAgain } from './stream.ts'

export interface PlatformaticConsumeOptions extends KafkaCommonOptions {
  /** `new Consumer({ groupId, … })` of `@platformatic/kafka`. Its group is the default of `consumer`. */
  readonly from: PlatformaticConsumer
  readonly topics: readonly string[]
}

export interface PlatformaticDefinedConsumeOptions<Input> extends PlatformaticConsumeOptions, InputOptions<Input> {}

/** Resolves when the consumer has joined its group. */
export async function consume<X extends Execution, C, Data>(
  operation: Operation<X, C>,
  options: PlatformaticConsumeOptions,
  handler: InboxHandler<X, Data>,
): Promise<Subscription>
export async function consume<Input, C>(
  operation: DefinedOperation<Input, C>,
  options: PlatformaticDefinedConsumeOptions<Input>,
): Promise<Subscription>
export async function consume<X extends Execution, Input, C>(
  operation: Consumed<X, Input, C>,
  options: PlatformaticConsumeOptions | PlatformaticDefinedConsumeOptions<Input>,
  handler?: InboxHandler<X>,
): Promise<Subscription> {
  const owner = `consume ${operation.name}`
  checkOptions(owner, options, platformaticChecks)
  const { from, topics, consumer, concurrency = 1, identity, contentType, onUnknown, ...inboxOptions } = options
  if (from === undefined || topics === undefined || topics.length === 0) {
    throw misconfigured(`${owner} needs from: new Consumer({ groupId: 'billing', … }), and topics: ['orders']`)
  }
  const group = { ...inboxOptionsOf(onUnknown), consumer: consumer ?? from.groupId }
  const receiver = receiverOf(operation, { ...inboxOptions, ...group }, handler)
  const envelope = { identity, contentType }
  // Before anything is taken: a topic that is missing is an error of the caller's.
  const first = await openStream(from, topics)
  const consuming = startConsuming(receiver, concurrency)
  const reading = readAgainAndAgain({ from, topics, concurrency, consuming, receiver, envelope }, first)
  return {
    async stop(given) {
      const { drained } = await consuming.stop(given)
      await endsWithin(receiver.clock, leaveMsMax, reading)
      return { drained }
    },
  }
}

const platformaticChecks: ChecksOf<PlatformaticDefinedConsumeOptions<unknown>> = {
  ...kafkaCommonChecks,
  from: having('a consumer of @platformatic/kafka', 'consume'),
  topics: listOf(text),
}

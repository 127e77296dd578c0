/** What consumers of Kafka take on every client. */
import type { InboxOptions } from '../../inbox/index.ts'
import type { ChecksOf } from '../../ports/check-options.ts'
import { oneOf } from '../../ports/option-kinds.ts'
import type { EnvelopeOptions } from '../envelope.ts'
import { consumeChecks, type ConsumeOptions, type InputOptions } from '../options.ts'

export interface KafkaCommonOptions extends Omit<ConsumeOptions, 'onUnknown'>, Pick<EnvelopeOptions, 'identity'> {
  /** How many partitions are worked on at the same time. Default 1. Messages of one partition always run one after the other, in their order. */
  readonly concurrency?: number
  /**
   * A message that may have taken effect does not run again until its row is settled. `park` (default): it is parked, the partition continues, and the message
   * is taken again once its row is settled. `block`: the partition waits until then.
   */
  readonly onUnknown?: 'park' | 'block'
}

export const kafkaCommonChecks: ChecksOf<KafkaCommonOptions & InputOptions<unknown>> = {
  ...consumeChecks,
  identity: oneOf('message', 'position'),
  onUnknown: oneOf('park', 'block'),
}

/** To the inbox, a partition that waits is a delivery that comes again. */
export function inboxOptionsOf(onUnknown: 'park' | 'block' = 'park'): Pick<InboxOptions, 'onUnknown'> {
  return { onUnknown: onUnknown === 'block' ? 'retry' : 'park' }
}

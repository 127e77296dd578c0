/** What consumers of all brokers take and return. */
import type { DefinedInboxOptions, InboxOptions } from '../inbox/index.ts'
import type { ChecksOf } from '../ports/check-options.ts'
import { anything, callable, count, oneOf, text, waitedMs } from '../ports/option-kinds.ts'
import type { StopOptions } from './consuming.ts'
import type { EnvelopeOptions } from './envelope.ts'

export interface ConsumeOptions
  extends Omit<InboxOptions, 'consumer' | 'beatMs'>, Pick<EnvelopeOptions, 'contentType'> {
  /** The scope of its keys. Default: the name that the broker has for it. Once messages were received, it must not change. */
  readonly consumer?: string
  /** How many messages run at the same time. Default 1, which keeps their order as long as none is retried and no other process consumes. */
  readonly concurrency?: number
}

export type InputOptions<Input> = Pick<DefinedInboxOptions<Input>, 'input'>

export const consumeChecks: ChecksOf<ConsumeOptions & InputOptions<unknown>> = {
  // By the inbox.
  consumer: anything,
  concurrency: count,
  contentType: text,
  attemptsMax: count,
  backoffMs: waitedMs,
  backoffMsMax: waitedMs,
  onUnknown: oneOf('retry', 'park'),
  input: callable,
}

export interface Subscription {
  /** Takes no more messages, and waits for those under way. What has not ended by then is delivered again. */
  stop(options?: StopOptions): Promise<{ drained: boolean }>
}

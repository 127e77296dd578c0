/** What the audit says about a message that an operator skipped: the consumer will miss it, and its people must be able to name it. */
import type { NewEntry, SkipRequest } from '../../../ports/faculties/admin.ts'
import type { NewMessage } from '../../../ports/outbox.ts'

export type SkippedMessage = Pick<NewMessage, 'topic' | 'aggregate' | 'dedupId' | 'scope'>

export function skippedEntry({ position, by }: SkipRequest, message: SkippedMessage): NewEntry {
  const { topic, aggregate, dedupId, scope } = message
  const of = aggregate === undefined ? '' : ` of aggregate ${aggregate}`
  return { ...by, act: 'outbox.skip', scope, detail: `message ${position} to ${topic}${of}, dedup id ${dedupId}` }
}

/** The journal of phased work, as scripts return it. */
import type { Journal, UnreadableJournal } from '../../../ports/steps.ts'
import { journalOf, type StepRow } from '../../shared/journal-row.ts'
import { isNil, listOf, numberOf, textOf, textOrNull } from '../connection/reply.ts'
import type { Reply } from '../../shared/redis/driver.ts'

export function journalFrom(reply: Reply | undefined): Journal | UnreadableJournal | undefined {
  if (isNil(reply)) return undefined
  const [now, work, steps] = listOf(reply)
  const [version, input, deadline] = listOf(work)
  const row = { version: textOf(version), input: textOf(input), deadline_at_ms: textOrNull(deadline) }
  return journalOf(row, listOf(steps).map(stepOf), numberOf(now))
}

function stepOf(reply: Reply): StepRow {
  const [position, name, kind, state, value, epoch, repeatUntil] = listOf(reply)
  return {
    position: numberOf(position),
    name: textOf(name),
    kind: numberOf(kind),
    state: numberOf(state),
    result: textOrNull(value),
    epoch: numberOf(epoch),
    repeat_until_ms: isNil(repeatUntil) ? null : numberOf(repeatUntil),
  }
}

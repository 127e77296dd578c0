/** Sets a message aside for an operator. */
import { engine } from '../engine/internal.ts'
import { type InboxParts, storeFailed, type ToPark } from './delivery.ts'
import { parkedCopy, type ReadMessage } from './message.ts'
import type { InboxResult } from './result.ts'

/** The copy is durable before the message counts as parked: only then may its broker forget it. */
export async function park<C>(parts: InboxParts<C>, message: ReadMessage, to: ToPark): Promise<InboxResult> {
  const { operation, consumer } = parts
  const { cause, rowId, attempts } = to
  const copy = parkedCopy(message, { consumer, operation: operation.name, cause, rowId, attempts })
  try {
    await operation[engine].shared.inbox.call(parked => parked.park(copy))
  } catch (error) {
    return storeFailed(parts, error)
  }
  return tellParked(parts, copy.id, to)
}

/** Counted, and reported with the name of its consumer. Never an id of a message: producers may put anything into it. */
export function tellParked<C>({ operation, consumer }: InboxParts<C>, id: string, to: ToPark): InboxResult {
  const { cause, rowId, error } = to
  const { telemetry } = operation[engine].shared
  const attributes = { operation: operation.name, ...(rowId === undefined ? {} : { identity: rowId }) }
  telemetry.count('parked', { ...attributes, detail: cause })
  telemetry.report('a message was parked: inspect it, then redrive or discard it', {
    ...attributes,
    detail: `${consumer} ${id}: ${cause}`,
    ...(error === undefined ? {} : { error }),
  })
  return { kind: 'parked', cause, id, ...(error === undefined ? {} : { error }) }
}

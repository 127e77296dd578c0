/** Runs the messages that operators have marked, as if their broker had delivered them. */
import { engine } from '../engine/internal.ts'
import { isLatchkeyError, LatchkeyError } from '../ports/errors.ts'
import type { RedriveEnd, TakenInboxMessage } from '../ports/faculties/inbox.ts'
import { deliver, type Ended, type InboxParts, type Runner, storeFailed } from './delivery.ts'
import { type InboxMessage, messageOf, readMessage } from './message.ts'
import { tellParked } from './park.ts'
import type { InboxResult } from './result.ts'

export interface Redriven {
  /** Of the parked message. */
  readonly id: string
  readonly result: InboxResult
}

/** One at a time: the lease of one that waited for another would run out. */
export async function redrive<C>(
  parts: InboxParts<C>,
  runner: (message: InboxMessage) => Runner,
  limit: number,
): Promise<readonly Redriven[]> {
  const { inbox } = parts.operation[engine].shared
  const redriven: Redriven[] = []
  while (redriven.length < limit && !inbox.isClosed()) {
    const taken = await take(parts)
    if (taken === undefined) break
    const result = await run(parts, runner, taken)
    redriven.push({ id: taken.message.id, result })
    if (result.kind === 'retry' && result.cause === 'store-down') break
  }
  return redriven
}

async function take<C>({ operation, consumer }: InboxParts<C>): Promise<TakenInboxMessage | undefined> {
  const {
    name,
    [engine]: { settings, shared },
  } = operation
  try {
    return await shared.inbox.call(parked => parked.take({ consumer, operation: name, leaseMs: settings.leaseMs }))
  } catch (error) {
    // Counted and reported where the store is called; it is asked again at the next turn.
    if (isLatchkeyError(error, 'store-unavailable') || isLatchkeyError(error, 'overloaded')) return undefined
    throw error
  }
}

async function run<C>(
  parts: InboxParts<C>,
  runner: (message: InboxMessage) => Runner,
  taken: TakenInboxMessage,
): Promise<InboxResult> {
  const { id, cause, rowId, attempts } = taken.message
  const ended =
    taken.message.unreadable === undefined
      ? await runAgain(parts, runner, taken)
      : ({ kind: 'park', cause, rowId, attempts, error: unreadable(taken) } as const)
  try {
    // Lost to another process: that one knows better how it ended.
    await parts.operation[engine].shared.inbox.call(parked => parked.settle(taken, endOf(ended)))
  } catch (error) {
    // The lease runs out, and another turn takes it. What is done is not run again.
    return ended.kind === 'park' || ended.kind === 'retry' ? storeFailed(parts, error) : ended
  }
  return ended.kind === 'park' ? tellParked(parts, id, ended) : ended
}

function runAgain<C>(
  parts: InboxParts<C>,
  runner: (message: InboxMessage) => Runner,
  taken: TakenInboxMessage,
): Promise<Ended> {
  const {
    name,
    [engine]: { settings, shared },
  } = parts.operation
  const given = messageOf(taken.message)
  const onBeat = () => shared.inbox.call(parked => parked.renew(taken, settings.leaseMs))
  const message = readMessage(`inbox of ${name}`, given)
  // Its lease is as long as the operation's, whatever the broker's is.
  return deliver(
    { ...parts, beatMs: undefined },
    { message, run: runner(given), spent: taken.message.attempts, onBeat },
  )
}

function unreadable({ message: { id, unreadable: why } }: TakenInboxMessage): LatchkeyError {
  return new LatchkeyError('row-unreadable', `the parked message ${id} cannot be read: ${why}`)
}

function endOf(ended: Ended): RedriveEnd {
  switch (ended.kind) {
    case 'done':
    case 'duplicate':
      return { kind: 'done' }
    case 'retry':
      return { kind: 'retry', dueInMs: ended.afterMs }
    case 'park':
      return { kind: 'parked', cause: ended.cause, attempts: ended.attempts }
  }
}

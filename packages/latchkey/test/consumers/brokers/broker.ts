/** What the tests need of each broker, in their own process and in those that they kill. Each call opens a connection of its own. */
import type { Execution } from '../../../src/engine/execution.ts'
import type { Operation } from '../../../src/engine/operation.ts'
import type { InboxHandler } from '../../../src/inbox/index.ts'
import type { Subscription } from '../../../src/consumers/options.ts'

export interface Queue {
  /** Of the stream, the queue, or the topic and its group. */
  readonly name: string
  /** Of the operation that consumes it, and of a delivery where the broker has such a thing. */
  readonly leaseMs: number
}

export interface Consume<X extends Execution> {
  readonly operation: Operation<X, unknown>
  readonly handler: InboxHandler<X>
  readonly backoffMs: number
}

export interface TestBroker {
  /** To a queue that is created if it is not there, with its consumer. */
  publish(url: string, queue: Queue, ids: readonly string[]): Promise<void>
  /** Messages that it has, or has not heard of. */
  waiting(url: string, queue: Queue): Promise<number>
  /** What is unknown is parked. Four messages at the same time. */
  consume<X extends Execution>(url: string, queue: Queue, consume: Consume<X>): Promise<Subscription>
}

/** Closes the connection after the subscription that uses it. */
export function stopAndClose({ stop }: Subscription, close: () => Promise<unknown>): Subscription {
  return { stop: given => closeAfter(stop(given), close) }
}

export async function closeAfter<T>(used: Promise<T>, close: () => Promise<unknown>): Promise<T> {
  try {
    return await used
  } finally {
    await close()
  }
}

export const common = { onUnknown: 'park', attemptsMax: 100, concurrency: 4 } as const

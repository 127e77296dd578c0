/** A store with a table of the application's, and an inbox over it. */
import { json } from '../../src/index.ts'
import type { GuardedExecution } from '../../src/engine/execution.ts'
import type { LatchkeyOptions } from '../../src/engine/latchkey.ts'
import { inbox, type Inbox, type InboxMessage, type InboxOptions, parkedMessages } from '../../src/inbox/index.ts'
import type { Store } from '../../src/ports/store.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import { latchkeyOn, type TestLatchkey } from '../engine/fixture.ts'

/** One database, used by all tests of a suite: each has messages of its own. */
export interface Ground {
  readonly store: Store
  /** Writes a row of the application's in the transaction. */
  book(tx: unknown, label: string): Promise<void>
  /** How often it was booked, as committed. */
  booked(label: string): Promise<number>
}

export function quiet(store: Store, options: Partial<LatchkeyOptions<unknown, unknown>> = {}): TestLatchkey {
  return latchkeyOn(store, { telemetry: silentTelemetry, ...options })
}

let consumers = 0

/** A consumer that no other test has. */
export function newConsumer(): string {
  consumers += 1
  return `consumer-${consumers}`
}

export interface Guarded extends Pick<Inbox<GuardedExecution>, 'receive' | 'redriven'> {
  readonly latchkey: TestLatchkey
  readonly consumer: string
  readonly parked: ReturnType<typeof parkedMessages>
  /** What the handler was called with. */
  readonly runs: InboxMessage[]
}

export interface GuardedOver extends Partial<InboxOptions> {
  readonly onFailure?: 'hold' | 'rerun'
  readonly leaseMs?: number
  readonly latchkey?: TestLatchkey
}

export function guardedInbox(store: Store, over: GuardedOver = {}): Guarded {
  const { onFailure = 'rerun', leaseMs = 30_000, latchkey = quiet(store), ...options } = over
  const consumer = over.consumer ?? newConsumer()
  const operation = latchkey.guarded('orders.book', { leaseMs, onFailure })
  return {
    ...inbox(operation, { ...options, consumer }),
    latchkey,
    consumer,
    parked: parkedMessages(latchkey),
    runs: [],
  }
}

export function order(id: string | undefined, data: unknown = { order: 1 }): InboxMessage {
  return { source: 'orders', id, type: 'order.placed', data, headers: { traceparent: '00-1' } }
}

export const act = { by: 'on-call', reason: 'the producer was repaired' } as const

export const created = (): ReturnType<typeof json> => json(201, {})

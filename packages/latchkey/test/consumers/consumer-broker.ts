/** A broker as the cases of consumers use it. */
import { expect, vi } from 'vitest'
import type { GuardedExecution } from '../../src/engine/execution.ts'
import type { GuardedOperation } from '../../src/engine/operation.ts'
import { createLatchkey, type Latchkey } from '../../src/index.ts'
import type { InboxHandler, InboxOptions } from '../../src/inbox/index.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import type { Store } from '../../src/ports/store.ts'
import type { MemoryStore, MemoryTx } from '../../src/stores/memory/index.ts'

export interface Subscription {
  stop(options?: { readonly timeoutMs?: number }): Promise<{ drained: boolean }>
}

export interface Order {
  readonly order: string
}

/** An empty queue of the broker, for each test. */
export interface ConsumerBroker {
  /** As a CloudEvent of a shop. Without an id: a message that nobody can recognise. */
  publish(id: string | undefined, data: Order): Promise<void>
  consume(
    operation: GuardedOperation<unknown>,
    options: Partial<InboxOptions>,
    handler: InboxHandler<GuardedExecution, Order>,
  ): Promise<Subscription>
  /** Messages that the broker has: waiting, delayed, or delivered and not settled. */
  waiting(): Promise<number>
}

export const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000, interval: 50 })

export async function allSettledBy(broker: ConsumerBroker): Promise<void> {
  await eventually(async () => expect(await broker.waiting()).toBe(0))
}

/** `store`: a memory store, which may have a fault. */
export function quiet(store: Store): Latchkey<MemoryTx, unknown> {
  // `as`: a fault is put over one or two calls, the others are its own.
  const given = store as MemoryStore
  return createLatchkey({ store: given, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false })
}

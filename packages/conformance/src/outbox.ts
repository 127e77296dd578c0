/** The outbox conformance cases, as data: every store with transactions passes them against its real server. */
import { type StoreHarness, withHarness } from './store-harness.ts'
import type { TestFunction } from './store.ts'
import { aheadCases } from './outbox/ahead.ts'
import { appendCases } from './outbox/append.ts'
import type { OutboxCase } from './outbox/fixture.ts'
import { failureCases } from './outbox/failures.ts'
import { laneCases } from './outbox/lanes.ts'
import { leaseCases } from './outbox/leases.ts'
import { skipCases } from './outbox/skip.ts'
import { suspectCases } from './outbox/suspects.ts'
import { volumeCases } from './outbox/volume.ts'

export const outboxCases: readonly OutboxCase[] = [
  ...appendCases,
  ...leaseCases,
  ...aheadCases,
  ...failureCases,
  ...skipCases,
  ...laneCases,
  ...suspectCases,
  ...volumeCases,
]

export type OutboxNeed = NonNullable<OutboxCase['needs']>

/**
 * Registers every case, each with a harness of its own over empty data. `advance` moves the outbox's instants too. A store
 * with one writer denies `several-writers`: there no transaction can commit out of turn. One without the faculty `admin` denies that.
 */
export function runOutboxCases(
  open: () => Promise<StoreHarness>,
  test: TestFunction,
  denied: readonly OutboxNeed[] = [],
): void {
  for (const { name, needs, run } of outboxCases) {
    if (needs === undefined || !denied.includes(needs)) test(name, () => withHarness(open, run))
  }
}

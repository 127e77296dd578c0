/** Gauges of unknown rows and of the age of the last comparisons; observed at intervals, because both are queries. */
import type { WorkOptions } from './turns.ts'
import type { ReconcilerContext } from './host.ts'

export interface Gauges {
  observe(): Promise<void>
}

/** Half of an exporter's usual minute. */
const everyMs = 30_000

export function gauges(
  context: ReconcilerContext,
  { registered, ledgers }: Pick<WorkOptions, 'registered' | 'ledgers'>,
): Gauges {
  const { store, clock, telemetry, call } = context
  const seen = new Set<string>()
  const withoutLookup = new Set<string>()
  let dueAtMs = Number.NEGATIVE_INFINITY

  function observeWithoutLookup(operation: string, count: number): void {
    telemetry.observe('unknown.without_lookup', registered.has(operation) ? 0 : count, { operation })
    if (registered.has(operation) || count === 0 || withoutLookup.has(operation)) return
    withoutLookup.add(operation)
    telemetry.report(
      'rows are unknown and no look-up is registered for their operation here: a webhook, a ledger or an operator must settle them',
      { operation },
    )
  }

  async function observeUnknowns(): Promise<void> {
    const unknowns = await call('unknowns', () => store.reconciliation.unknowns())
    for (const { operation } of unknowns) seen.add(operation)
    for (const operation of seen) {
      // Zero once the last one was settled.
      const { count, oldestMs } = unknowns.find(one => one.operation === operation) ?? { count: 0, oldestMs: 0 }
      telemetry.observe('unknown.count', count, { operation })
      telemetry.observe('unknown.oldest_age', oldestMs, { operation })
      observeWithoutLookup(operation, count)
    }
  }

  async function observeLedgers(): Promise<void> {
    for (const name of ledgers.keys()) {
      const last = await call('last ledger', () => context.ledgers().last(name))
      if (last !== undefined) telemetry.observe('ledger.last_run_age', last.finishedAgoMs, { detail: name })
    }
  }

  return {
    async observe() {
      if (clock.monotonicMs() < dueAtMs) return
      dueAtMs = clock.monotonicMs() + everyMs
      await observeUnknowns()
      await observeLedgers()
    },
  }
}

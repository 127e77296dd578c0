/** What is unknown now, and how old the last comparisons are; told at intervals, because both are queries. */
import type { WorkOptions } from './turns.ts'
import type { Parts } from './host.ts'

export interface Gauges {
  tell(): Promise<void>
}

/** Half of the usual minute of an exporter. */
const everyMs = 30_000

export function gauges(parts: Parts, { registered, ledgers }: Pick<WorkOptions, 'registered' | 'ledgers'>): Gauges {
  const { store, clock, telemetry, call } = parts
  const seen = new Set<string>()
  const withoutLookup = new Set<string>()
  let dueAtMs = Number.NEGATIVE_INFINITY

  function tellWithoutLookup(operation: string, count: number): void {
    telemetry.observe('unknown.without_lookup', registered.has(operation) ? 0 : count, { operation })
    if (registered.has(operation) || count === 0 || withoutLookup.has(operation)) return
    withoutLookup.add(operation)
    telemetry.report(
      'rows are unknown, and no look-up is registered for their operation here: a webhook, a ledger or a person has to settle them',
      { operation },
    )
  }

  async function tellUnknowns(): Promise<void> {
    const unknowns = await call('unknowns', () => store.reconciliation.unknowns())
    for (const { operation } of unknowns) seen.add(operation)
    for (const operation of seen) {
      // Back to zero when the last one was settled.
      const { count, oldestMs } = unknowns.find(one => one.operation === operation) ?? { count: 0, oldestMs: 0 }
      telemetry.observe('unknown.count', count, { operation })
      telemetry.observe('unknown.oldest_age', oldestMs, { operation })
      tellWithoutLookup(operation, count)
    }
  }

  async function tellLedgers(): Promise<void> {
    for (const name of ledgers.keys()) {
      const last = await call('last ledger', () => store.reconciliation.lastLedger(name))
      if (last !== undefined) telemetry.observe('ledger.last_run_age', last.finishedAgoMs, { detail: name })
    }
  }

  return {
    async tell() {
      if (clock.monotonicMs() < dueAtMs) return
      dueAtMs = clock.monotonicMs() + everyMs
      await tellUnknowns()
      await tellLedgers()
    },
  }
}

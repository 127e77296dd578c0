/** Writes Latchkey's telemetry to the history. The checker knows nothing else of the application. */
import type { Metric, Telemetry } from 'latchkey'
import type { AppEvent, History } from '../history.ts'

/** The metrics that show a hard case. The others would fill the disk. */
const told: ReadonlySet<Metric> = new Set<Metric>([
  'takeover',
  'claim_lost',
  'zombie_key',
  'outcome.store_failed',
  'unprotected',
  'parked',
  'reserve.key_misuse',
  'reconcile.resolved',
  'reconcile.refused',
  'reconcile.failed',
])

export function historyTelemetry(history: History<AppEvent>): Telemetry {
  return {
    count(metric, { operation = '', identity = '', detail = '' }) {
      if (told.has(metric)) history.write({ type: 'metric', name: metric, operation, identity, detail })
    },
    observe() {},
    report(message, { operation = '', detail = '', error }) {
      const why = error instanceof Error ? error.message : ''
      console.error(new Date().toISOString(), message, operation, detail, why)
    },
  }
}

/** The playground's log: what Latchkey reports, and the counters of interest, by identity hash. */
import type { Metric, Telemetry } from 'latchkey'

const logged: ReadonlySet<Metric> = new Set([
  'reserve.replay',
  'reserve.key_misuse',
  'reserve.unknown',
  'zombie_key',
  'takeover',
  'claim_lost',
])

export const logTelemetry: Telemetry = {
  count(metric, { operation, identity }) {
    if (logged.has(metric)) console.log([`latchkey ${metric}`, operation, identity].filter(Boolean).join(' · '))
  },
  observe() {},
  report(message, { error }) {
    console.error(`latchkey: ${message}`, error instanceof Error ? error.message : '')
  },
}

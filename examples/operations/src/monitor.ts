import type { Telemetry } from 'latchkey'

/** Counters and histograms of a metrics library. */
export interface Metrics {
  add(name: string, labels: Record<string, string>): void
  record(name: string, value: number, labels: Record<string, string>): void
}

/** The identity is a hash of scope, operation and key: safe in a log, and too varied for a label. */
export function monitor(metrics: Metrics, log: (line: string, error: unknown) => void): Telemetry {
  return {
    count: (metric, { operation = '', detail = '' }) => metrics.add(`api.idempotency.${metric}`, { operation, detail }),
    observe: (metric, value, { operation = '', detail = '' }) =>
      metrics.record(`api.idempotency.${metric}`, value, { operation, detail }),
    report: (message, { operation = '-', identity = '-', error }) =>
      log(`latchkey ${operation} ${identity}: ${message}`, error),
  }
}

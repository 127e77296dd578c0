/** Latchkey's metrics on your own `prom-client` registry. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having } from '../../ports/option-kinds.ts'
import { type ExportedTelemetry, exportedTelemetry } from '../exported.ts'
import type { PrometheusRegistry } from './driver.ts'
import { cellMetric, gaugeMetric } from './metric.ts'

export type { ExportedTelemetry } from '../exported.ts'
export type { ScopeDuplicates } from '../top-scopes.ts'
export type { PrometheusMetric, PrometheusRegistry } from './driver.ts'

export interface PrometheusTelemetryOptions {
  /** `register` of prom-client, or a `Registry` of your own: what your metrics endpoint shows. */
  readonly registry: PrometheusRegistry
}

const checks: ChecksOf<PrometheusTelemetryOptions> = {
  registry: having('a Registry of prom-client', 'registerMetric'),
}

/** A registry takes a name once, so several Latchkeys with one registry share its telemetry. */
const telemetries = new WeakMap<PrometheusRegistry, ExportedTelemetry>()

/**
 * Registers Latchkey's metrics, and returns the telemetry for `createLatchkey`. Reports go to `console.warn`, as without a telemetry;
 * `{ ...prometheusTelemetry({ registry }), report }` sends them elsewhere.
 */
export function prometheusTelemetry(options: PrometheusTelemetryOptions): ExportedTelemetry {
  checkOptions('prometheusTelemetry', options, checks)
  const { registry: register } = options
  if (register === undefined) throw misconfigured('prometheusTelemetry needs registry: register of prom-client')
  const known = telemetries.get(register)
  if (known !== undefined) return known
  const add = (entry: Parameters<typeof cellMetric>[0]) => {
    const { metric, make } = cellMetric(entry)
    register.registerMetric(metric)
    return make
  }
  const telemetry = exportedTelemetry({
    counter: add,
    histogram: add,
    gauge: source => register.registerMetric(gaugeMetric(source)),
  })
  telemetries.set(register, telemetry)
  return telemetry
}

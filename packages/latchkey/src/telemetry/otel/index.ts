/** Latchkey's metrics and spans through OpenTelemetry. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having } from '../../ports/option-kinds.ts'
import type { MetricEntry } from '../catalogue.ts'
import { type Exporter, type ExportedTelemetry, exportedTelemetry } from '../exported.ts'
import type { InstrumentOptions, OtelMeter, OtelTracer } from './driver.ts'
import { tracedBy } from './spans.ts'

export type { ExportedTelemetry } from '../exported.ts'
export type { ScopeDuplicates } from '../top-scopes.ts'
export type {
  InstrumentOptions,
  OtelCounter,
  OtelGauge,
  OtelHistogram,
  OtelMeter,
  OtelResult,
  OtelSpan,
  OtelTracer,
} from './driver.ts'

export interface OtelTelemetryOptions {
  /** `metrics.getMeter('latchkey')` of @opentelemetry/api. */
  readonly meter: OtelMeter
  /** `trace.getTracer('latchkey')`: spans around claim, handler and complete. Absent: none. */
  readonly tracer?: OtelTracer
}

const checks: ChecksOf<OtelTelemetryOptions> = {
  meter: having('a meter of OpenTelemetry', 'createCounter', 'createHistogram', 'createObservableGauge'),
  tracer: having('a tracer of OpenTelemetry', 'startActiveSpan'),
}

/**
 * Creates Latchkey's instruments, and returns the telemetry for `createLatchkey`: make one for a meter, and give it to every Latchkey of the
 * process. Reports go to `console.warn`, as without a telemetry; `{ ...otelTelemetry({ meter }), report }` sends them elsewhere.
 */
export function otelTelemetry(options: OtelTelemetryOptions): ExportedTelemetry {
  checkOptions('otelTelemetry', options, checks)
  const { meter, tracer } = options
  if (meter === undefined) throw misconfigured("otelTelemetry needs meter: metrics.getMeter('latchkey')")
  const telemetry = exportedTelemetry(exporterTo(meter))
  return tracer === undefined ? telemetry : { ...telemetry, trace: tracedBy(tracer) }
}

function exporterTo(meter: OtelMeter): Exporter {
  return {
    counter(entry) {
      const counter = meter.createCounter(entry.name, optionsOf(entry))
      return labels => ({ add: value => counter.add(value, labels) })
    },
    histogram(entry) {
      const advice = { explicitBucketBoundaries: [...entry.buckets] }
      const histogram = meter.createHistogram(entry.name, { ...optionsOf(entry), advice })
      return labels => ({ add: value => histogram.record(value, labels) })
    },
    gauge({ entry, read }) {
      const gauge = meter.createObservableGauge(entry.name, optionsOf(entry))
      gauge.addCallback(result => read((value, labels) => result.observe(value, labels)))
    },
  }
}

function optionsOf({ help, unit }: MetricEntry): InstrumentOptions {
  return { description: help, unit }
}

/** Latchkey's metrics and spans through OpenTelemetry. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having } from '../../ports/option-kinds.ts'
import type { MetricEntry } from '../catalogue.ts'
import { type Cell, type Exporter, type ExportedTelemetry, exportedTelemetry } from '../exported.ts'
import type { Labels } from '../label-sets.ts'
import type { InstrumentOptions, OtelMeter, OtelTracer } from './driver.ts'
import { tracedBy } from './spans.ts'

export type { ExportedTelemetry } from '../exported.ts'
export type { ScopeDuplicates } from '../top-scopes.ts'
export type {
  InstrumentOptions,
  OtelHistogram,
  OtelMeter,
  OtelObservable,
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
  meter: having('a meter of OpenTelemetry', 'createHistogram', 'createObservableCounter', 'createObservableGauge'),
  tracer: having('a tracer of OpenTelemetry', 'startActiveSpan'),
}

/** Totals of two telemetries would hide each other, so several Latchkeys with one meter share its instruments. */
const telemetries = new WeakMap<OtelMeter, ExportedTelemetry>()

/**
 * Creates Latchkey's instruments, and returns the telemetry for `createLatchkey`. Reports go to `console.warn`, as without a telemetry; `{ ...otelTelemetry({ meter }), report }` sends them elsewhere.
 */
export function otelTelemetry(options: OtelTelemetryOptions): ExportedTelemetry {
  checkOptions('otelTelemetry', options, checks)
  const { meter, tracer } = options
  if (meter === undefined) throw misconfigured("otelTelemetry needs meter: metrics.getMeter('latchkey')")
  const telemetry = telemetries.get(meter) ?? exportedTelemetry(exporterTo(meter))
  telemetries.set(meter, telemetry)
  return tracer === undefined ? telemetry : { ...telemetry, trace: tracedBy(tracer) }
}

function exporterTo(meter: OtelMeter): Exporter {
  return {
    counter(entry) {
      const totals: Total[] = []
      meter.createObservableCounter(entry.name, optionsOf(entry)).addCallback(result => {
        for (const { value, labels } of totals) result.observe(value, labels)
      })
      return labels => {
        const total = new Total(labels)
        totals.push(total)
        return total
      }
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

/** Counted here and read when metrics are collected: the SDK hashes the labels of every event that it gets. */
class Total implements Cell {
  value = 0
  readonly labels: Labels

  constructor(labels: Labels) {
    this.labels = labels
  }

  add(value: number): void {
    this.value += value
  }
}

function optionsOf({ help, unit }: MetricEntry): InstrumentOptions {
  return { description: help, unit }
}

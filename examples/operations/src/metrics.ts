import { metrics, trace } from '@opentelemetry/api'
import type { Telemetry } from 'latchkey'
import { otelTelemetry } from 'latchkey/otel'
import { prometheusTelemetry } from 'latchkey/prometheus'
import { register } from 'prom-client'

/** On the registry that your metrics endpoint shows. */
export const onPrometheus: Telemetry = prometheusTelemetry({ registry: register })

/** Through whatever the OpenTelemetry SDK of the process exports to. */
export const throughOtel: Telemetry = otelTelemetry({
  meter: metrics.getMeter('latchkey'),
  tracer: trace.getTracer('latchkey'),
})

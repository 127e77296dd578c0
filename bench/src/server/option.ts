/** Options of Latchkey whose cost is measured, each with what shows that it is at work: one that does nothing costs nothing. */
import { randomBytes } from 'node:crypto'
import { otelTelemetry } from 'latchkey/otel'
import { prometheusTelemetry } from 'latchkey/prometheus'
import type pg from 'pg'
import type { Option } from '../subjects.ts'
import type { Backend } from './backends/backend.ts'
import type { Options } from './operations.ts'
import type { PlainRequest } from './plain.ts'

export interface OpenedOption {
  readonly options: Options<PlainRequest>
  /** What shows that it is not at work. `runs`: how many new keys the process has granted, each with one run of the handler. */
  faults(runs: number): Promise<readonly string[]>
}

/** Twice what the quiet tenant of the section `flood` uses. */
const newKeysPerMinute = 6_000

export function openOption(option: Option, backend: Backend | undefined): Promise<OpenedOption> | OpenedOption {
  switch (option) {
    case 'prometheus':
      return prometheus()
    case 'otel':
      return otel()
    case 'encryption':
      return encryption(backend?.pool)
    case 'limits':
      // Whether it refuses is seen by who sends the requests.
      return { options: { limits: { newKeysPerMinute }, scope: tenantOf }, faults: async () => [] }
  }
}

function tenantOf({ headers }: PlainRequest): string {
  return String(headers['x-tenant'] ?? '')
}

// Loaded only where they are measured, so that the other servers are what they were without them.
async function prometheus(): Promise<OpenedOption> {
  const { Registry } = await import('prom-client')
  const register = new Registry()
  const telemetry = prometheusTelemetry({ registry: register })
  return {
    options: { telemetry },
    async faults(runs) {
      const found = await register.getSingleMetric('api_idempotency_reserve_created_count_total')?.get()
      return countFaults(found?.values ?? [], runs)
    },
  }
}

async function otel(): Promise<OpenedOption> {
  const sdk = await import('@opentelemetry/sdk-metrics')
  const exporter = new sdk.InMemoryMetricExporter(sdk.AggregationTemporality.CUMULATIVE)
  // Collects once a minute by itself, as where metrics are pushed.
  const reader = new sdk.PeriodicExportingMetricReader({ exporter })
  const telemetry = otelTelemetry({ meter: new sdk.MeterProvider({ readers: [reader] }).getMeter('latchkey') })
  return {
    options: { telemetry },
    async faults(runs) {
      const { resourceMetrics } = await reader.collect()
      const metrics = resourceMetrics.scopeMetrics.flatMap(scope => scope.metrics)
      const found = metrics.find(({ descriptor }) => descriptor.name === 'api.idempotency.reserve.created.count')
      // A counter: its points are numbers.
      return countFaults((found?.dataPoints ?? []) as readonly { readonly value: number }[], runs)
    },
  }
}

function countFaults(points: readonly { readonly value: number }[], runs: number): string[] {
  const counted = points.reduce((sum, { value }) => sum + value, 0)
  return counted === runs ? [] : [`the telemetry counted ${counted} new keys, and the handler ran ${runs} times`]
}

function encryption(pool: pg.Pool | undefined): OpenedOption {
  if (pool === undefined) throw new Error('encryption is measured on PostgreSQL')
  return {
    options: { encryption: { keys: { bench: randomBytes(32) }, current: 'bench', indexKey: randomBytes(32) } },
    async faults() {
      // A word that every receipt contains.
      const { rows } = await pool.query<{ readable: string }>(
        `select count(*) as readable from latchkey.keys where position('accepted'::bytea in outcome) > 0`,
      )
      const readable = Number(rows[0]?.readable)
      return readable === 0 ? [] : [`${readable} rows hold an answer that is not encrypted`]
    },
  }
}

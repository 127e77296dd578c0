import { Counter, Registry } from 'prom-client'
import { expect, it, vi } from 'vitest'
import { createLatchkey, singleTenant } from '../../index.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { catalogue, prometheusName } from '../catalogue.ts'
import { prometheusTelemetry } from './index.ts'

/** The lines of one metric, without its help. */
async function linesOf(register: Registry, metric: string): Promise<string[]> {
  const lines = (await register.metrics()).split('\n')
  return lines.filter(line => line.startsWith(metric) || line.startsWith(`# TYPE ${metric} `))
}

it('shows a counter on the registry beside the metrics of the application, and with its default labels', async () => {
  const register = new Registry()
  register.setDefaultLabels({ app: 'shop' })
  const own = new Counter({ name: 'orders', help: 'Orders.', registers: [register] })
  const telemetry = prometheusTelemetry({ registry: register })
  own.inc()
  telemetry.count('store.error', { detail: 'claim' })
  telemetry.count('store.error', { detail: 'claim' })
  expect(await linesOf(register, 'orders')).toContain('orders{app="shop"} 1')
  expect(await linesOf(register, 'api_idempotency_store_error_count_total')).toEqual([
    '# TYPE api_idempotency_store_error_count_total counter',
    'api_idempotency_store_error_count_total{call="claim",app="shop"} 2',
  ])
})

it('shows a duration in seconds, in cumulative buckets that end with all', async () => {
  const register = new Registry()
  const telemetry = prometheusTelemetry({ registry: register })
  for (const ms of [0, 1, 40, 50, 1_000_000]) telemetry.observe('execution.duration', ms, { operation: 'pay' })
  const name = 'api_idempotency_execution_duration_seconds'
  const lines = await linesOf(register, name)
  const bucket = (le: string) =>
    Number(
      lines
        .find(line => line.includes(`le="${le}"`))
        ?.split(' ')
        .at(-1),
    )
  expect(['0.001', '0.025', '0.05', '300', '+Inf'].map(bucket)).toEqual([2, 2, 4, 4, 5])
  expect(lines).toContain(`${name}_count{operation="pay"} 5`)
  expect(lines).toContain(`${name}_sum{operation="pay"} 1000.091`)
  expect(lines[0]).toBe(`# TYPE ${name} histogram`)
})

it('shows the last value of a gauge', async () => {
  const register = new Registry()
  const telemetry = prometheusTelemetry({ registry: register })
  telemetry.observe('unknown.oldest_age', 90_000, { operation: 'pay' })
  telemetry.observe('unknown.oldest_age', 30_000, { operation: 'pay' })
  expect(await linesOf(register, 'api_idempotency_unknown_oldest_age_seconds')).toEqual([
    '# TYPE api_idempotency_unknown_oldest_age_seconds gauge',
    'api_idempotency_unknown_oldest_age_seconds{operation="pay"} 30',
  ])
})

it('begins the counters of an operation at zero, so that the first event is an increase', async () => {
  const register = new Registry()
  prometheusTelemetry({ registry: register }).count('reserve.created', { operation: 'pay' })
  expect(await linesOf(register, 'api_idempotency_unprotected_count_total')).toContain(
    'api_idempotency_unprotected_count_total{operation="pay"} 0',
  )
})

it('registers every metric of the catalogue, under its name, and resets its counters with the registry', async () => {
  const register = new Registry()
  const telemetry = prometheusTelemetry({ registry: register })
  const names = (await register.getMetricsAsJSON()).map(({ name }) => name)
  expect(names.toSorted()).toEqual(Object.values(catalogue).map(prometheusName).toSorted())
  telemetry.count('store.error', { detail: 'claim' })
  telemetry.observe('batch.size', 4, { detail: 'postgres' })
  register.resetMetrics()
  const text = await register.metrics()
  expect(text).toContain('api_idempotency_store_error_count_total{call="claim"} 0')
  expect(text).toContain('api_idempotency_batch_size_count{store="postgres"} 0')
})

it('is readable in the format of OpenMetrics as well', async () => {
  const register = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>()
  register.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  prometheusTelemetry({ registry: register }).count('store.error', { detail: 'claim' })
  const lines = (await register.metrics()).split('\n').filter(line => line.includes('store_error'))
  expect(lines).toContain('# TYPE api_idempotency_store_error_count counter')
  expect(lines).toContain('api_idempotency_store_error_count_total{call="claim"} 1')
})

it('shows the scopes with the most duplicates, at most 100, and lists them', async () => {
  const register = new Registry()
  const telemetry = prometheusTelemetry({ registry: register })
  for (let n = 0; n < 500; n++) {
    telemetry.count('reserve.replay', { operation: 'pay', scope: `tenant "${n}"` })
    telemetry.count('reserve.key_misuse', { operation: 'pay', scope: 'noisy' })
  }
  const lines = await linesOf(register, 'api_idempotency_duplicates_by_scope')
  expect(lines).toContain('api_idempotency_duplicates_by_scope{scope="noisy",kind="key_misuse"} 500')
  const scopes = new Set(lines.slice(1).map(line => /scope="(.*)",kind/.exec(line)?.[1]))
  expect(scopes.size).toBe(100)
  expect(telemetry.duplicatesByScope()[0]).toMatchObject({ scope: 'noisy', misuse: 500 })
})

it('is one telemetry for one registry, which several Latchkeys may share', () => {
  const register = new Registry()
  expect(prometheusTelemetry({ registry: register })).toBe(prometheusTelemetry({ registry: register }))
  expect(prometheusTelemetry({ registry: new Registry() })).not.toBe(prometheusTelemetry({ registry: register }))
})

it('still writes reports to the console, or where they are sent instead', async () => {
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const told: string[] = []
  const telemetry = prometheusTelemetry({ registry: new Registry() })
  telemetry.report('the store failed', {})
  expect(warned).toHaveBeenCalledWith('[latchkey] the store failed')
  warned.mockRestore()
  const own = { ...telemetry, report: (message: string) => void told.push(message) }
  const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant, telemetry: own, maintenance: false })
  const operation = latchkey.guarded('pay', { onFailure: 'hold' })
  await operation.run({ scope: 'acme', key: 'k', input: 1 }, () => 1)
  await operation.run({ scope: 'acme', key: 'k', input: 2 }, () => 1).catch(() => {})
  expect(told).toEqual([expect.stringContaining('a client used a key again')])
  expect(telemetry.duplicatesByScope()).toMatchObject([{ scope: 'acme', misuse: 1 }])
  await latchkey.close()
})

it('says what it needs', () => {
  const given = (options: unknown) => () => prometheusTelemetry(options as { registry: Registry })
  expect(given({})).toThrow('prometheusTelemetry needs registry: register of prom-client')
  expect(given({ registry: {} })).toThrow('registry must be a Registry of prom-client with registerMetric')
  expect(given({ registy: new Registry() })).toThrow('did you mean registry?')
})

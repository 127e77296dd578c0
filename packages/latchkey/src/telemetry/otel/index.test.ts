import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, context, type ContextManager, ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api'
import { DataPointType, MeterProvider, type MetricData, MetricReader } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLatchkey, notExecuted, singleTenant } from '../../index.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { catalogue } from '../catalogue.ts'
import { otelTelemetry } from './index.ts'

class Reader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}

  async read(): Promise<Map<string, MetricData>> {
    const { resourceMetrics } = await this.collect()
    const metrics = resourceMetrics.scopeMetrics.flatMap(scope => scope.metrics)
    return new Map(metrics.map(metric => [metric.descriptor.name, metric]))
  }
}

function metered() {
  const reader = new Reader()
  const meter = new MeterProvider({ readers: [reader] }).getMeter('latchkey')
  return { reader, meter }
}

describe('metrics', () => {
  it('are counters, histograms and gauges, with units and buckets of the catalogue', async () => {
    const { reader, meter } = metered()
    const telemetry = otelTelemetry({ meter })
    for (const [metric, { kind }] of Object.entries(catalogue)) {
      if (metric === 'duplicates.by_scope') continue
      const name = metric as Exclude<keyof typeof catalogue, 'duplicates.by_scope'>
      if (kind === 'counter') telemetry.count(name, { operation: 'pay', scope: 'acme' })
      else telemetry.observe(name, 1_000, { operation: 'pay' })
    }
    const read = await reader.read()
    const types = { counter: DataPointType.SUM, gauge: DataPointType.GAUGE, histogram: DataPointType.HISTOGRAM }
    for (const { name, kind, unit, buckets } of Object.values(catalogue)) {
      const metric = read.get(name)
      expect(metric, name).toMatchObject({ dataPointType: types[kind], descriptor: { unit } })
      if (kind === 'counter') expect(metric).toMatchObject({ isMonotonic: true, dataPoints: [{ value: 1 }] })
      const histogram = { dataPoints: [{ value: { buckets: { boundaries: buckets }, count: 1 } }] }
      if (kind === 'histogram') expect(metric).toMatchObject(histogram)
    }
    expect(read.size).toBe(Object.keys(catalogue).length)
  })

  it('are shared by the Latchkeys of a meter', async () => {
    const { reader, meter } = metered()
    for (const telemetry of [otelTelemetry({ meter }), otelTelemetry({ meter })]) {
      telemetry.count('reserve.created', { operation: 'pay' })
    }
    expect((await reader.read()).get('api.idempotency.reserve.created.count')?.dataPoints).toMatchObject([{ value: 2 }])
  })

  it('have the names that dashboards of idempotent APIs know', async () => {
    const named = ['created', 'replay', 'in_progress', 'key_misuse', 'failed_retry', 'unknown']
    const others = ['store.error', 'zombie_key', 'ttl_pruned']
    const reconciled = ['reconcile.scheduled', 'reconcile.resolved', 'reconcile.failed']
    const names = Object.values(catalogue).map(({ name }) => name)
    for (const name of [...named.map(one => `reserve.${one}`), ...others, ...reconciled])
      expect(names).toContain(`api.idempotency.${name}.count`)
  })

  it('say what they need', () => {
    const given = (options: unknown) => () => otelTelemetry(options as Parameters<typeof otelTelemetry>[0])
    expect(given({})).toThrow("otelTelemetry needs meter: metrics.getMeter('latchkey')")
    expect(given({ meter: {} })).toThrow('meter must be a meter of OpenTelemetry with createHistogram')
    expect(given({ meter: metered().meter, tracer: {} })).toThrow('tracer must be a tracer of OpenTelemetry')
  })
})

/** What `@opentelemetry/context-async-hooks` does. */
function asyncContexts(): ContextManager {
  const storage = new AsyncLocalStorage<Context>()
  return {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (given, run, self, ...args) => storage.run(given, () => run.call(self as never, ...args)),
    bind: (_, target) => target,
    enable() {
      return this
    },
    disable() {
      return this
    },
  }
}

describe('spans', () => {
  const exporter = new InMemorySpanExporter()
  const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer('test')
  beforeAll(() => void context.setGlobalContextManager(asyncContexts()))
  afterAll(() => context.disable())
  beforeEach(() => exporter.reset())

  const telemetry = otelTelemetry({ meter: metered().meter, tracer })
  const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant, telemetry, maintenance: false })
  afterAll(() => latchkey.close())

  const guarded = latchkey.guarded('payments.create', { onFailure: 'hold' })
  const atomic = latchkey.atomic('orders.create')
  const phased = latchkey.phased('parcels.send', { version: 1 }, async x => {
    await x.phase('pack', async () => 'packed')
    return { status: 200, headers: [], body: undefined, version: 0 }
  })
  const finished = () => exporter.getFinishedSpans()
  const named = (name: string) => finished().filter(span => span.name === name)

  it.each([
    ['guarded', 'payments.create', (key: string) => guarded.run({ scope: 'acme', key, input: 1 }, () => 1)],
    ['atomic', 'orders.create', (key: string) => atomic.run({ scope: 'acme', key, input: 1 }, () => 1)],
    ['phased', 'parcels.send', (key: string) => phased.run({ scope: 'acme', key, input: 1 })],
  ])(
    'stand around claim, handler and complete of %s work, below the span of the request',
    async (_, operation, run) => {
      const request = tracer.startSpan('request')
      await context.with(trace.setSpan(context.active(), request), () => run('secret-key'))
      request.end()
      const own = finished().filter(span => span.name.startsWith('latchkey.'))
      expect(own.map(span => span.name)).toEqual(['latchkey.claim', 'latchkey.handler', 'latchkey.complete'])
      const identity = latchkey.identify({ scope: 'acme', operation, key: 'secret-key' })
      for (const span of own) {
        expect(span.attributes).toEqual({ 'latchkey.operation': operation, 'latchkey.identity': identity })
        expect(span.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
        expect(span.status.code).toBe(SpanStatusCode.UNSET)
        expect(JSON.stringify([span.name, span.attributes, span.events])).not.toContain('secret-key')
      }
    },
  )

  it('contain what the handler traces itself', async () => {
    await guarded.run({ scope: 'acme', key: 'nested', input: 1 }, async () => {
      await Promise.resolve()
      tracer.startSpan('charge').end()
      return 1
    })
    const [handler] = named('latchkey.handler')
    expect(named('charge')[0]?.parentSpanContext?.spanId).toBe(handler?.spanContext().spanId)
  })

  it('are marked where the handler failed, by the kind of its error and not by its text', async () => {
    const fails = () => Promise.reject(notExecuted(new Error('card of secret-key')))
    await guarded.run({ scope: 'acme', key: 'failing', input: 1 }, fails).catch(() => {})
    const [handler] = named('latchkey.handler')
    expect(handler?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'not-executed' })
    expect(named('latchkey.complete')[0]?.status.code).toBe(SpanStatusCode.UNSET)
    expect(JSON.stringify(finished().map(span => [span.status, span.events]))).not.toContain('secret-key')
  })

  it('leave a replay without a handler', async () => {
    await guarded.run({ scope: 'acme', key: 'again', input: 1 }, () => 1)
    exporter.reset()
    await guarded.run({ scope: 'acme', key: 'again', input: 1 }, () => 1)
    expect(finished().map(span => span.name)).toEqual(['latchkey.claim'])
  })

  it.each([
    [
      'throws before it calls the work',
      () => {
        throw new Error('no tracer')
      },
    ],
    ['never calls the work', () => undefined],
    [
      'calls the work twice',
      (_: string, __: object, run: (span: never) => void) => {
        const span = { setStatus() {}, end() {} }
        run(span as never)
        run(span as never)
      },
    ],
  ])('change no outcome where the tracer %s', async (_, startActiveSpan) => {
    const broken = otelTelemetry({ meter: metered().meter, tracer: { startActiveSpan } })
    const other = createLatchkey({ store: memoryStore(), scope: singleTenant, telemetry: broken, maintenance: false })
    let runs = 0
    const run = () =>
      other.guarded('pay', { onFailure: 'hold' }).run({ scope: 'acme', key: 'k', input: 1 }, () => (runs += 1))
    const answer = () => run().catch((error: unknown) => String(error))
    expect([await answer(), await answer()]).toEqual([1, 1])
    expect(runs).toBe(1)
    await other.close()
  })
})

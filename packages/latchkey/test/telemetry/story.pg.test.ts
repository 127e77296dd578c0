/**
 * A day in a minute: operations of several kinds, duplicates, a reused key, an owner that dies, an outcome that nobody knows, messages, reaping.
 * Both exporters see it, and their numbers are compared with the rows and with each other.
 */
import { randomUUID } from 'node:crypto'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import pg from 'pg'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLatchkey, json, notExecuted, outcomeUnknown, singleTenant, type Telemetry } from 'latchkey'
import { otelTelemetry } from 'latchkey/otel'
import { type ExportedTelemetry, prometheusTelemetry } from 'latchkey/prometheus'
import { createReconciler } from 'latchkey/reconcile'
import { postgresStore, type PostgresStore } from 'latchkey/stores/postgres'
import { createWorkers, type Workers } from 'latchkey/workers'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { claimRequest } from '../claim-request.ts'
import { eventually, gate } from '../engine/fixture.ts'
import { seriesOf, total } from './series.ts'

describePostgres('the metrics of a small story', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  let workers: Workers
  let close: () => Promise<unknown>
  const register = new Registry()
  const otel = new PrometheusExporter({ preventServerStart: true })
  const serializer = new PrometheusSerializer('', false, undefined, true, true)
  const prometheus = prometheusTelemetry({ registry: register })
  const exporters: ExportedTelemetry[] = [
    prometheus,
    otelTelemetry({ meter: new MeterProvider({ readers: [otel] }).getMeter('latchkey') }),
  ]
  const telemetry: Telemetry = {
    count: (...given) => exporters.forEach(each => each.count(...given)),
    observe: (...given) => exporters.forEach(each => each.observe(...given)),
    report() {},
  }

  const read = async () => seriesOf(await register.metrics())
  const readOtel = async () => seriesOf(serializer.serialize((await otel.collect()).resourceMetrics))
  const counter = (name: string) => `api_idempotency_${name}_count_total`
  const rows = async (condition: string) =>
    (await pool.query<{ n: number }>(`select count(*)::int as n from latchkey.keys where ${condition}`)).rows[0]?.n

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 6 })
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
    await tell()
  })
  afterAll(async () => {
    await workers.stop()
    await close()
    await pool.end()
  })

  async function tell(): Promise<void> {
    const latchkey = createLatchkey({ store, scope: singleTenant, telemetry, maintenance: false })
    close = () => latchkey.close()
    const pay = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const order = latchkey.atomic('orders.create')
    const parcel = latchkey.phased('parcels.send', { version: 1 }, async x => {
      await x.phase('pack', tx => x.outbox.append(tx, { topic: 'parcels', payload: { packed: true } }))
      return json(201, {})
    })
    const payment = (
      scope: string,
      key: string,
      handler: () => number | Promise<number> = () => 1,
      input: unknown = 1,
    ) => pay.run({ scope, key, input }, handler)

    for (let n = 0; n < 5; n++) await payment('acme', `p${n}`)
    for (let n = 0; n < 3; n++) await order.run({ scope: 'acme', key: `o${n}`, input: 1 }, () => 1)
    for (let n = 0; n < 2; n++) await parcel.run({ scope: 'acme', key: `s${n}`, input: 1 })

    // A retry is replayed; one tenant retries without end, and uses its keys again for other requests.
    for (let n = 0; n < 3; n++) await payment('acme', 'p0')
    await order.run({ scope: 'acme', key: 'o0', input: 1 }, () => 2)
    await payment('noisy', 'loop')
    for (let n = 0; n < 7; n++) await payment('noisy', 'loop')
    for (let n = 0; n < 2; n++)
      await expect(payment('noisy', 'loop', () => 1, { amount: n })).rejects.toMatchObject({ code: 'key-reused' })

    // Two at once.
    const door = gate()
    const first = payment('acme', 'twice', () => door.opened.then(() => 1))
    await eventually(async () => (await rows(`state = 1`)) === 1)
    await expect(payment('acme', 'twice')).rejects.toMatchObject({ code: 'in-progress' })
    door.open()
    await first

    // A provider that says nothing happened, and one that says nothing.
    await expect(payment('acme', 'declined', () => Promise.reject(notExecuted()))).rejects.toThrow()
    await payment('acme', 'declined')
    const lost = () => Promise.reject(outcomeUnknown(new Error('no answer')))
    await expect(payment('acme', 'lost', lost)).rejects.toMatchObject({ code: 'outcome-unknown' })
    await expect(payment('acme', 'lost')).rejects.toMatchObject({ code: 'outcome-unknown' })

    // An owner that died, and two rows past their retention.
    const job = { id: randomUUID(), scope: 'acme', operation: 'jobs.run' }
    await store.claim(claimRequest({ identity: job, leaseMs: 1, recovery: 'rerun' }))
    await pool.query(
      `update latchkey.keys set expires_at = now() - interval '1 hour'
      where operation = 'orders.create' and state = 2 and id <> $1`,
      [latchkey.identify({ scope: 'acme', operation: 'orders.create', key: 'o0' })],
    )

    const delivered: string[] = []
    const parcels = { name: 'parcels', deliver: async () => (delivered.push('one'), { kind: 'delivered' as const }) }
    const use = createReconciler(latchkey)
    workers = createWorkers(latchkey, {
      sweeper: { everyMs: 20 },
      reaper: { everyMs: 20 },
      relay: { targets: { parcels }, everyMs: 20 },
      reconciler: { use, everyMs: 20 },
    })
    workers.start()
    await eventually(() => delivered.length === 2)
    await eventually(async () => total(await read(), counter('zombie_key')) === 1)
    await eventually(async () => total(await read(), counter('ttl_pruned')) === 2)
    await eventually(async () => (await read()).has('api_idempotency_unknown_count{operation="payments.create"}'))
    await workers.drain()
  }

  it('agree with the rows', async () => {
    const series = await read()
    const ofOperation = (name: string, operation: string) => total(series, counter(name), `operation="${operation}"`)
    const pruned = total(series, counter('ttl_pruned'), 'table="keys"')
    expect(pruned).toBe(2)
    expect(ofOperation('reserve_created', 'payments.create')).toBe(await rows(`operation = 'payments.create'`))
    expect(ofOperation('reserve_created', 'parcels.send')).toBe(await rows(`operation = 'parcels.send'`))
    expect(ofOperation('reserve_created', 'orders.create')).toBe(
      ((await rows(`operation = 'orders.create'`)) ?? 0) + pruned,
    )
    expect(total(series, 'api_idempotency_unknown_count')).toBe(await rows('state = 4'))
    expect(total(series, counter('zombie_key'), 'to="failed_retryable"')).toBe(await rows('state = 3 and crashes = 1'))
    // One execution for each grant, of which the row counts the attempts.
    const { rows: attempts } = await pool.query<{ n: number }>(
      `select sum(attempts)::int as n from latchkey.keys where operation in ('payments.create', 'parcels.send')`,
    )
    const executed = ['payments.create', 'parcels.send'].map(operation =>
      total(series, 'api_idempotency_execution_duration_seconds_count', `operation="${operation}"`),
    )
    expect((executed[0] ?? 0) + (executed[1] ?? 0)).toBe(attempts[0]?.n)
  })

  it('agree with what the clients did', async () => {
    const series = await read()
    const counts = Object.fromEntries(
      ['replay', 'in_progress', 'key_misuse', 'failed_retry', 'unknown'].map(name => [
        name,
        total(series, counter(`reserve_${name}`)),
      ]),
    )
    expect(counts).toEqual({ replay: 11, in_progress: 1, key_misuse: 2, failed_retry: 1, unknown: 1 })
    expect(total(series, counter('store_error'))).toBe(0)
    expect(series.get('api_idempotency_circuit_open{store="postgres"}')).toBe(0)
    expect(series.get('api_idempotency_outbox_parked{}')).toBe(0)
    expect(series.get('api_idempotency_parked_rows{}')).toBe(0)
  })

  it('name the tenant that repeats itself', async () => {
    const [worst, next] = prometheus.duplicatesByScope()
    expect(worst).toEqual({ scope: 'noisy', replays: 7, inProgress: 0, misuse: 2, missedMax: 0 })
    expect(next).toEqual({ scope: 'acme', replays: 4, inProgress: 1, misuse: 0, missedMax: 0 })
    const series = await read()
    expect(series.get('api_idempotency_duplicates_by_scope{kind="key_misuse",scope="noisy"}')).toBe(2)
  })

  it('count the turns of every worker', async () => {
    const series = await read()
    for (const [worker, { turns, failures }] of Object.entries(workers.health())) {
      expect(total(series, counter('worker_turn'), `worker="${worker}"`)).toBe(turns)
      expect(failures).toBe(0)
    }
  })

  it('are the same through OpenTelemetry: the same names, labels, buckets and values', async () => {
    const series = await read()
    expect(Object.fromEntries(await readOtel())).toEqual(Object.fromEntries(series))
    expect(series.size).toBeGreaterThan(50)
  })
})

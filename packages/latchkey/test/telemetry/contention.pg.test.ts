import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLatchkey, silentTelemetry, singleTenant, type StoreObserver } from 'latchkey'
import { postgresStore, type PostgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { claimRequest } from '../claim-request.ts'
import { recordingTelemetry } from '../engine/fixture.ts'

describePostgres('what PostgreSQL tells about waiting', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  beforeEach(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 3 })
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
  })
  afterEach(() => pool.end())

  /** The values of one metric, all of which carry the name of the store. */
  function valuesOf({ told }: ReturnType<typeof recordingTelemetry>, metric: string): number[] {
    const ours = told.filter((one): one is [string, number, object] => Array.isArray(one) && one[0] === metric)
    for (const [, , about] of ours) expect(about).toEqual({ detail: 'postgres' })
    return ours.map(([, value]) => value)
  }

  it('is each batch once: together they carry every claim and every completion', async () => {
    const telemetry = recordingTelemetry()
    const latchkey = createLatchkey({ store, scope: singleTenant, telemetry, maintenance: false })
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const keys = Array.from({ length: 40 }, (_, n) => `batched-${n}`)
    await Promise.all(keys.map(key => operation.run({ scope: 'acme', key, input: 1 }, () => 1)))
    const sizes = valuesOf(telemetry, 'batch.size')
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(80)
    expect(Math.max(...sizes)).toBeGreaterThan(10)
    const waits = valuesOf(telemetry, 'batch.wait')
    expect(waits).toHaveLength(sizes.length)
    for (const waitedMs of waits) expect(waitedMs).toBeGreaterThanOrEqual(0)
    await latchkey.close()
  })

  it('is the wait of a transaction for its place and its connection', async () => {
    const telemetry = recordingTelemetry()
    const latchkey = createLatchkey({ store, scope: singleTenant, telemetry, maintenance: false })
    const operation = latchkey.atomic('orders.create')
    const run = (key: string) => operation.run({ scope: 'acme', key, input: 1 }, () => pause(100, 1))
    await Promise.all(['w0', 'w1', 'w2', 'w3'].map(run))
    const waits = valuesOf(telemetry, 'pool.wait').toSorted((a, b) => a - b)
    // Two places; the other two wait until a handler has ended.
    expect(waits.filter(waitedMs => waitedMs >= 90)).toHaveLength(2)
    await latchkey.close()
  })

  it('is a batch that gave up waiting for a lock', async () => {
    const telemetry = recordingTelemetry()
    const latchkey = createLatchkey({ store, scope: singleTenant, telemetry, maintenance: false })
    const won = await Promise.all([claimRequest(), claimRequest()].map(each => store.claim(each)))
    const [held, free] = won.flatMap(result => (result.kind === 'won' ? [result.claim] : []))
    if (held === undefined || free === undefined) throw new Error('both keys are new')
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from latchkey.keys where id = $1 for update', [held.id])
    const outcome = { status: 200, headers: [], body: undefined, version: 0 }
    const ends = [held, free].map(claim => store.complete(claim, outcome, 3_600_000))
    expect(await ends[1]).toBe('written')
    await holder.query('commit')
    holder.release()
    expect(await ends[0]).toBe('written')
    expect(telemetry.told).toContainEqual(['lock_timeout', { detail: 'postgres' }])
    expect(telemetry.counted('lock_timeout')).toBe(1)
    await latchkey.close()
  })

  it('is not measured where no one listens', async () => {
    const observers: StoreObserver[] = []
    const observed = { ...store, observe: (observer: StoreObserver) => void observers.push(observer) }
    const open = (telemetry = silentTelemetry) =>
      createLatchkey({ store: observed, scope: singleTenant, telemetry, maintenance: false })
    const quiet = [
      open(),
      open({ ...silentTelemetry, report() {} }),
      createLatchkey({ store: observed, scope: singleTenant }),
    ]
    expect(observers).toHaveLength(0)
    const loud = open(recordingTelemetry())
    expect(observers).toHaveLength(1)
    for (const latchkey of [...quiet, loud]) await latchkey.close()
  })
})

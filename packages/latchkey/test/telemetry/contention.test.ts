import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLatchkey, type Latchkey, singleTenant } from 'latchkey'
import { type SqliteStore, sqliteStore, type SqliteTx } from 'latchkey/stores/sqlite'
import { recordingTelemetry } from '../engine/fixture.ts'

describe('what SQLite tells about waiting', () => {
  let folder: string
  let store: SqliteStore
  let telemetry: ReturnType<typeof recordingTelemetry>
  let latchkey: Latchkey<SqliteTx, unknown>
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'latchkey-contention-'))
    store = sqliteStore({ path: join(folder, 'keys.db'), open: file => new Database(file) })
    await store.migrate()
    telemetry = recordingTelemetry()
    latchkey = createLatchkey({ store, scope: singleTenant, telemetry, maintenance: false })
  })
  afterEach(async () => {
    await latchkey.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const valuesOf = (metric: string) =>
    telemetry.told.flatMap(one => (Array.isArray(one) && one[0] === metric ? [Number(one[1])] : []))

  it('is each group commit once: together they carry every claim and every completion', async () => {
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const keys = Array.from({ length: 40 }, (_, n) => `grouped-${n}`)
    await Promise.all(keys.map(key => operation.run({ scope: 'acme', key, input: 1 }, () => 1)))
    const sizes = valuesOf('batch.size')
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(80)
    expect(Math.max(...sizes)).toBeGreaterThan(10)
    expect(valuesOf('batch.wait')).toHaveLength(sizes.length)
  })

  it('is the wait of a transaction for its turn to write, and that of a write behind it', async () => {
    const orders = latchkey.atomic('orders.create')
    const payments = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const slow = () => pause(100, 1)
    await Promise.all([
      orders.run({ scope: 'acme', key: 'one', input: 1 }, slow),
      orders.run({ scope: 'acme', key: 'two', input: 1 }, slow),
      payments.run({ scope: 'acme', key: 'three', input: 1 }, () => 1),
    ])
    expect(valuesOf('pool.wait').filter(waitedMs => waitedMs >= 90)).toHaveLength(1)
    expect(Math.max(...valuesOf('batch.wait'))).toBeGreaterThanOrEqual(90)
  })
})

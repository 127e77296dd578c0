import { afterEach, describe, expect, it } from 'vitest'
import type { AuditLine, Store } from 'latchkey'
import { createWorkers } from '../../src/workers/index.ts'
import { memoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import { fakeClock, leapingClock } from '../engine/fake-clock.ts'
import { eventually, latchkeyOn, recordingTelemetry, type TestLatchkey } from '../engine/fixture.ts'
import { trailCases } from './trail.cases.ts'

const day = 24 * 3_600_000
const request = (key: string, input: unknown = 1) => ({ scope: 'acme', key, input })

const open: TestLatchkey[] = []
afterEach(async () => {
  for (const latchkey of open.splice(0)) await latchkey.close()
})
function start(store: Store, options: Parameters<typeof latchkeyOn>[1]): TestLatchkey {
  const latchkey = latchkeyOn(store, options)
  open.push(latchkey)
  return latchkey
}

describe('the trail in memory', () => {
  trailCases(async () => ({ store: memoryStore(), close: async () => {} }))
})

it('is refused at construction on a store that cannot record, with the way out', () => {
  const { auditRecords: _records, ...store } = memoryStore()
  const on = (audit: object) => () => start(store, { audit: audit as never })
  expect(on({ records: 'all' })).toThrow('the memory store cannot record lines (Store.auditRecords): use postgresStore')
})

it('is refused at construction where its options contradict each other', () => {
  const on = (audit: object) => () => start(memoryStore(), { audit: audit as never })
  expect(on({})).toThrow("audit needs records: 'changes' or 'all'")
  expect(on({ records: 'some' })).toThrow("audit.records must be 'changes' or 'all' (got 'some')")
  expect(on({ records: 'all', retentionMs: 1_000 })).toThrow('audit.retentionMs must be at least 86400000, one day')
  expect(on({ records: 'all', retentionMs: day, sink: async () => {} })).toThrow('give retentionMs or a sink, not both')
  expect(() => createWorkers(start(memoryStore(), {}), { only: ['auditor'] })).toThrow(
    'the auditor has nothing to do without audit of createLatchkey',
  )
})

it('goes after its own retention, by workers, while the rows go by theirs', async () => {
  const clock = leapingClock()
  const latchkey = start(memoryStore({ clock }), { clock, audit: { records: 'changes', retentionMs: 30 * day } })
  await latchkey.guarded('pay', { onFailure: 'hold' }).run(request('a'), async () => 1)
  const workers = createWorkers(latchkey, { reaper: { everyMs: 10 }, auditor: { everyMs: 10 } })
  workers.start()
  clock.leap(29 * day)
  await eventually(async () => (await latchkey.list()).records.length === 0)
  expect((await latchkey.auditRecords()).lines).toHaveLength(1)
  clock.leap(2 * day)
  await eventually(async () => (await latchkey.auditRecords()).lines.length === 0)
  await workers.stop()
})

it('goes after its own retention, and to its sink, also without workers', async () => {
  const clock = fakeClock()
  const telemetry = recordingTelemetry()
  const pass = async (minutes: number) => {
    for (let second = 0; second < 60 * minutes; second += 1) {
      clock.advance(1_000)
      await new Promise(setImmediate)
    }
  }
  const shared = { clock, telemetry, maintenance: true }
  const kept = start(memoryStore({ clock }), { ...shared, audit: { records: 'changes', retentionMs: day } })
  await kept.guarded('pay', { onFailure: 'hold' }).run(request('a'), async () => 1)
  await pass(3)
  expect((await kept.auditRecords()).lines).toHaveLength(1)
  clock.advance(day)
  await pass(3)
  expect((await kept.auditRecords()).lines).toEqual([])

  const got: AuditLine[] = []
  let isAway = true
  const sink = async (lines: readonly AuditLine[]) => {
    if (isAway) throw new Error('the archive is away')
    got.push(...lines)
  }
  const handing = start(memoryStore({ clock }), { ...shared, audit: { records: 'changes', sink } })
  await handing.guarded('pay', { onFailure: 'hold' }).run(request('a'), async () => 1)
  await pass(3)
  expect((await handing.auditRecords()).lines).toHaveLength(1)
  expect(telemetry.told).toContainEqual([
    'the audit trail was not expired or handed over; it will be retried in a minute',
    { error: expect.objectContaining({ message: expect.stringMatching(/did not take 1 lines.*the archive is away/) }) },
  ])
  isAway = false
  await pass(3)
  expect((await handing.auditRecords()).lines).toEqual([])
  expect(got).toHaveLength(1)
})

it('answers a misuse the same when its line cannot be written, and reports that', async () => {
  const inner = memoryStore()
  const { auditRecords } = inner
  if (auditRecords === undefined) throw new Error('no trail')
  const addMisuse = () => Promise.reject(new Error('the disk is full'))
  const telemetry = recordingTelemetry()
  const store = { ...inner, auditRecords: { ...auditRecords, addMisuse } }
  const pay = start(store, { telemetry, audit: { records: 'all' } }).guarded('pay', { onFailure: 'hold' })
  await pay.run(request('a'), async () => 1)
  const answer = await pay.run(request('a', 2), async () => 2).catch((error: { code?: string }) => error.code)
  expect(answer).toBe('key-reused')
  expect(telemetry.told).toContainEqual([
    'the line of a refused misuse could not be written',
    expect.objectContaining({ operation: 'pay' }),
  ])
})

it('writes sixty lines of misuse a minute for a scope, and says that there were more', async () => {
  const clock = leapingClock()
  const telemetry = recordingTelemetry()
  const latchkey = start(memoryStore({ clock }), { clock, telemetry, audit: { records: 'all' } })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  await pay.run(request('a'), async () => 1)
  const misuse = () => pay.run(request('a', 2), async () => 2).catch(() => undefined)
  for (let n = 0; n < 70; n += 1) await misuse()
  const lines = async () =>
    (await latchkey.auditRecords({ limit: 1_000 })).lines.filter(({ what }) => what === 'misuse')
  const written = (await lines()).length
  // The bucket fills while the loop runs.
  expect(written).toBeGreaterThanOrEqual(60)
  expect(written).toBeLessThan(70)
  expect(JSON.stringify(telemetry.told)).toContain('the trail has no line of the others')
  clock.leap(60_000)
  await misuse()
  expect((await lines()).length).toBe(written + 1)
})

it('does not wait for the line of a misuse inside a transaction of the caller', async () => {
  const store = memoryStore()
  const latchkey = start(store, { audit: { records: 'all' } })
  const order = latchkey.atomic('order')
  await order.run(request('a'), async () => 1)
  await store.transaction(async (tx: MemoryTx) => {
    await expect(order.run({ ...request('a', 2), tx }, async () => 2)).rejects.toMatchObject({ code: 'key-reused' })
    await order.run({ ...request('b'), tx }, async () => 3)
  })
  await eventually(async () => (await latchkey.auditRecords()).lines.length === 3)
  const { lines } = await latchkey.auditRecords()
  expect(lines.map(({ what }) => what).toSorted()).toEqual(['completed', 'completed', 'misuse'])
})

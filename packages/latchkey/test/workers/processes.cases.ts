/** What worker processes on one database must do, on any store. Run by a test file per store. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { eventually } from '../engine/fixture.ts'
import { openPlace, type Place } from '../processes/database.ts'
import { abandonedRow, startWorker, type WorkerProcess } from './worker-processes.ts'
import type { WorkerArgument } from './worker-process.ts'

/** Long enough that a live process keeps its lease on a busy machine. */
const leaseMs = 15_000
/** Processes start slowly on a busy machine; tests wait for a condition, not for a time. */
const patienceMs = 120_000
const patient = { timeout: 2 * patienceMs }

interface ProcessFixture {
  place: Place
  start(workers: WorkerArgument['workers'], over?: Partial<WorkerArgument>): Promise<WorkerProcess>
}

export function itWorksInProcesses(placeName: () => string): void {
  const running: WorkerProcess[] = []
  // Filled before the first test runs.
  const fixture = {
    async start(workers, over) {
      const one = await startWorker({ place: placeName(), leaseMs, workers, ...over })
      running.push(one)
      return one
    },
  } as ProcessFixture
  beforeAll(async () => {
    fixture.place = await openPlace(placeName())
    await fixture.place.migrate()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map(one => one.kill()))
  })
  afterAll(() => fixture.place.close())
  itSharesTheWork(fixture)
  itEndsCleanly(fixture)
  itParksPoison(fixture)
}

function itSharesTheWork(fixture: ProcessFixture): void {
  it('sweeps each dead lease once with four processes at it', patient, async () => {
    const { store } = fixture.place
    const recoveries = ['hold', 'rerun'] as const
    const ids = await Promise.all(
      Array.from({ length: 120 }, (_, n) => abandonedRow(store, { label: `dead-${n}` }, recoveries[n % 2])),
    )
    const workers = { only: ['sweeper'], sweeper: { everyMs: 50, batch: 5 } } as const
    const four = await Promise.all(Array.from({ length: 4 }, () => fixture.start(workers)))
    const swept = () => four.flatMap(one => one.counted('zombie_key'))
    await eventually(() => swept().length >= 120, patienceMs)
    await Promise.all(four.map(one => one.terminate()))
    expect(swept()).toHaveLength(ids.length)
    expect(new Set(swept())).toEqual(new Set(ids))
    const rows = await Promise.all(ids.map(id => store.read(id)))
    expect(new Set(rows.map(row => row?.crashes))).toEqual(new Set([1]))
    expect(rows.filter(row => row?.state === 'unknown')).toHaveLength(60)
    expect(rows.filter(row => row?.state === 'failed_retryable')).toHaveLength(60)
  })

  it('resumes each row once with four processes at it', patient, async () => {
    const { place } = fixture
    const labels = Array.from({ length: 40 }, (_, n) => `resume-${n}`)
    const ids = await Promise.all(labels.map(label => abandonedRow(place.store, { label, slow: 20 })))
    const workers = { only: ['resumer'], resumer: { everyMs: 50, concurrency: 4 } } as const
    const four = await Promise.all(Array.from({ length: 4 }, () => fixture.start(workers)))
    const states = async () => new Set((await Promise.all(ids.map(id => place.store.read(id)))).map(row => row?.state))
    await eventually(async () => JSON.stringify([...(await states())]) === '["completed"]', patienceMs)
    await Promise.all(four.map(one => one.terminate()))
    expect(await Promise.all(labels.map(label => place.executions(label)))).toEqual(labels.map(() => 1))
    expect(await Promise.all(labels.map(label => place.businessRows(label)))).toEqual(labels.map(() => 1))
    const takeovers = four.flatMap(one => one.counted('takeover'))
    expect(takeovers).toHaveLength(ids.length)
    expect(new Set(takeovers)).toEqual(new Set(ids))
  })
}

function itEndsCleanly(fixture: ProcessFixture): void {
  it('leaves nothing in progress at SIGTERM, neither resumed work nor a request', patient, async () => {
    const { place } = fixture
    const labels = Array.from({ length: 4 }, (_, n) => `term-${n}`)
    const ids = await Promise.all(labels.map(label => abandonedRow(place.store, { label, slow: 1_500 })))
    const one = await fixture.start({ resumer: { everyMs: 50, concurrency: 4 } })
    one.request({ label: 'term-request', slow: 1_500 })
    const begun = async () => Promise.all([...labels, 'term-request'].map(label => place.executions(label)))
    await eventually(async () => (await begun()).every(count => count === 1), patienceMs)
    expect(await one.terminate()).toEqual({ code: 0, signal: null, drained: true })
    expect(await place.store.list({ state: 'in_progress', limit: 1_000 })).toMatchObject({ records: [] })
    const rows = await Promise.all(ids.map(id => place.store.read(id)))
    expect(rows.map(row => row?.state)).toEqual(labels.map(() => 'completed'))
    expect(await begun()).toEqual([1, 1, 1, 1, 1])
  })
}

function itParksPoison(fixture: ProcessFixture): void {
  it('parks a row that kills every process which resumes it, and the others go on', patient, async () => {
    const { place } = fixture
    const poison = await abandonedRow(place.store, { label: 'poison', poison: true })
    const labels = Array.from({ length: 10 }, (_, n) => `beside-poison-${n}`)
    const ids = await Promise.all(labels.map(label => abandonedRow(place.store, { label })))
    const parked = async () => (await place.store.read(poison))?.parked === true
    const start = () =>
      fixture.start({ only: ['resumer'], resumer: { everyMs: 50, concurrency: 1 } }, { leaseMs: 1_000 })
    let deaths = 0
    // As a supervisor would: a process that died is started again.
    for (let one = await start(); !(await parked());) {
      const died = await Promise.race([one.exited.then(() => true), eventually(parked, patienceMs).then(() => false)])
      if (!died) break
      deaths += 1
      one = await start()
    }
    expect(deaths).toBeGreaterThan(0)
    // The limit is five crashes, of which the row had one before.
    expect(deaths).toBeLessThan(5)
    expect(await place.executions('poison')).toBe(deaths)
    expect(await place.businessRows('poison')).toBe(0)
    const completed = async () => {
      const rows = await Promise.all(ids.map(id => place.store.read(id)))
      return rows.every(row => row?.state === 'completed')
    }
    await eventually(completed, patienceMs)
    expect(await Promise.all(labels.map(label => place.businessRows(label)))).toEqual(labels.map(() => 1))
    expect((await place.store.list({ parked: true, limit: 10 })).records.map(row => row.id)).toEqual([poison])
  })
}

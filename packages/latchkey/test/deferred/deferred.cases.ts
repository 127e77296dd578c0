/** What deferred work does, whichever store keeps it. Run by a test file per store. */
import { expect, it } from 'vitest'
import { createLatchkey, isLatchkeyError, notExecuted } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { engine } from '../../src/engine/internal.ts'
import { eventually, recordingTelemetry } from '../engine/fixture.ts'
import { openerOn } from '../processes/migrated.ts'
import { openStage, rowOf, type StageOptions } from './fixture.ts'

const act = { by: 'a test', reason: 'the provider was asked' } as const

export function itDefers(placeName: () => string): void {
  const stageOf = openerOn(placeName, openStage)

  it('keeps the work, runs nothing, and tells the outcome once a worker has run it', async () => {
    const stage = await stageOf()
    const id = stage.latchkey.identify(rowOf('plain'))
    expect(await stage.ask('plain')).toEqual({ kind: 'accepted', id })
    expect(await stage.ask('plain')).toEqual({ kind: 'accepted', id })
    expect(await stage.place.executions('plain')).toBe(0)
    const { record } = await stage.latchkey.inspect(rowOf('plain'))
    expect(record).toMatchObject({ state: 'pending', recovery: 'resume', attempts: 0, fence: 1 })
    // Deadline, maximum hold and retention: whenever it is begun, its outcome is there for its time.
    expect(Math.round(((record?.expiresAtMs ?? 0) - (record?.createdAtMs ?? 0)) / 60_000)).toBe(60 + 15 + 24 * 60)
    expect(await stage.work()).toEqual(['completed'])
    const done = { kind: 'done', id, status: 201, value: { label: 'plain', file: 'file-plain' } }
    expect(await stage.ask('plain')).toMatchObject(done)
    expect(await stage.work()).toEqual([])
    expect(await stage.place.executions('plain')).toBe(1)
    expect(await stage.place.businessRows('plain/write')).toBe(1)
  })

  it('keeps one row for thirty that ask at once, and runs it once', async () => {
    const stage = await stageOf()
    const answers = await Promise.all(Array.from({ length: 30 }, () => stage.ask('thirty')))
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['accepted']))
    const ends = (await Promise.all([stage.work(), stage.work(), stage.work()])).flat()
    expect(ends.filter(end => end === 'completed')).toHaveLength(1)
    expect(await stage.place.executions('thirty')).toBe(1)
  })

  it('refuses another input under the same key, before and after the end', async () => {
    const stage = await stageOf()
    await stage.ask('misused')
    const misuse = () => stage.report.run({ scope: 'acme', key: 'misused', input: { label: 'other' } })
    await expect(misuse()).rejects.toSatisfy(error => isLatchkeyError(error, 'key-reused'))
    await stage.work()
    await expect(misuse()).rejects.toSatisfy(error => isLatchkeyError(error, 'key-reused'))
    expect(await stage.ask('misused')).toMatchObject({ kind: 'done' })
  })

  it('finds its row again when the reply of the store was lost', async () => {
    let asked = 0
    const over: StageOptions['over'] = store => ({
      async enqueue(request) {
        asked += 1
        await store.enqueue(request)
        throw new Error('connection terminated')
      },
    })
    const stage = await stageOf({ over })
    expect(await stage.ask('lost')).toMatchObject({ kind: 'accepted' })
    expect(asked).toBe(1)
    expect(await stage.work()).toEqual(['completed'])
  })

  it('says that it could not keep it when the store did not', async () => {
    const over: StageOptions['over'] = () => ({ enqueue: () => Promise.reject(new Error('connection refused')) })
    const stage = await stageOf({ over })
    await expect(stage.ask('unkept')).rejects.toSatisfy(error => isLatchkeyError(error, 'store-unavailable'))
    expect((await stage.latchkey.inspect(rowOf('unkept'))).record).toBeUndefined()
  })

  it('ends in a kept 408 when nobody began it in time, and never runs', async () => {
    const stage = await stageOf({ deadlineMs: 1 })
    await stage.ask('overdue')
    const id = stage.latchkey.identify(rowOf('overdue'))
    await eventually(async () => (await stage.place.store.steps?.readJournal(id))?.overdue === true)
    await eventually(async () => (await stage.work()).includes('completed'))
    expect(await stage.ask('overdue')).toMatchObject({
      kind: 'done',
      status: 408,
      value: { type: 'urn:latchkey:problem:deadline-passed' },
    })
    expect(await stage.place.executions('overdue')).toBe(0)
    expect((await stage.latchkey.inspect(rowOf('overdue'))).record).toMatchObject({ state: 'completed', attempts: 1 })
  })

  it('ends at its deadline in a process that no longer declares it, and not before', async () => {
    const stage = await stageOf({ deadlineMs: 1_500 })
    const later = await stageOf()
    await stage.ask('undeclared')
    const telemetry = recordingTelemetry()
    const latchkey = createLatchkey({ store: stage.place.store, scope: () => 'acme', telemetry })
    const workers = createWorkers(latchkey, { only: ['resumer'], resumer: { everyMs: 50 } })
    workers.start()
    try {
      await eventually(async () => telemetry.told.length > 0)
      expect(await stage.ask('undeclared')).toMatchObject({ kind: 'accepted' })
      await later.ask('undeclared-later')
      await eventually(async () => (await stage.ask('undeclared')).kind === 'done')
      expect(await stage.ask('undeclared')).toMatchObject({
        status: 408,
        value: { type: 'urn:latchkey:problem:deadline-passed' },
      })
      expect(await stage.place.executions('undeclared')).toBe(0)
      // Its deadline is an hour away: it waits for a process that declares it.
      expect((await stage.latchkey.inspect(rowOf('undeclared-later'))).record).toMatchObject({
        state: 'pending',
        attempts: 0,
      })
    } finally {
      await workers.stop()
      await latchkey.close()
    }
    expect(await later.work()).toEqual(['completed'])
  })

  it('is run to its end past its deadline once a step of it is done', async () => {
    const stage = await stageOf({ deadlineMs: 2_000 })
    stage.faults.push(() => Promise.reject(notExecuted(new Error('refused'))))
    await stage.ask('begun')
    expect(await stage.work()).toEqual(['failed'])
    // What waits for a worker again is kept as long as what waits for its first.
    const { record } = await stage.latchkey.inspect(rowOf('begun'))
    const lifeMs = (record?.expiresAtMs ?? 0) - (record?.createdAtMs ?? 0)
    expect(lifeMs).toBeGreaterThanOrEqual(2_000 + 15 * 60_000 + 24 * 3_600_000)
    expect(await stage.ask('begun')).toMatchObject({ kind: 'accepted' })
    const id = stage.latchkey.identify(rowOf('begun'))
    await eventually(async () => (await stage.place.store.steps?.readJournal(id))?.overdue === true)
    await eventually(async () => (await stage.work()).includes('completed'))
    expect(await stage.ask('begun')).toMatchObject({ kind: 'done', status: 201 })
    expect(await stage.place.businessRows('begun/collect')).toBe(1)
  })

  it('is accepted in doubt, too, and goes on when a person has settled it', async () => {
    const stage = await stageOf()
    stage.faults.push(() => Promise.reject(new Error('socket hang up')))
    await stage.ask('doubt')
    expect(await stage.work()).toEqual(['unknown'])
    expect(await stage.ask('doubt')).toMatchObject({ kind: 'accepted' })
    expect((await stage.latchkey.inspect(rowOf('doubt'))).record?.state).toBe('unknown')
    const result = { file: 'found' }
    expect(await stage.latchkey.settle(rowOf('doubt'), { kind: 'happened', value: result }, act)).toEqual({
      kind: 'settled',
    })
    expect(await stage.ask('doubt')).toMatchObject({ kind: 'accepted' })
    expect(await stage.work()).toEqual(['completed'])
    expect(await stage.ask('doubt')).toMatchObject({ kind: 'done', value: { file: 'found' } })
    expect(stage.calls).toHaveLength(1)
  })

  it('is accepted while its worker is dead, and while it is parked', async () => {
    const stage = await stageOf()
    await stage.ask('parked')
    const [row] = await stage.place.store.resumable({ limit: 1 })
    const { store } = stage.place
    if (row === undefined) throw new Error('nothing is due')
    const claimed = await store.claim({
      ...row,
      claimId: '00000000-0000-4000-8000-000000000001',
      recovery: 'resume',
      leaseMs: 1,
      expiresInMs: 3_600_000,
      description: undefined,
    })
    if (claimed.kind !== 'won') throw new Error('not granted')
    await eventually(async () => ((await store.read(claimed.claim.id))?.leaseLeftMs ?? 1) <= 0)
    expect(await stage.ask('parked')).toMatchObject({ kind: 'accepted' })
    await store.park(claimed.claim, 'poison')
    expect(await stage.ask('parked')).toMatchObject({ kind: 'accepted' })
    await stage.latchkey.unpark(rowOf('parked'), act)
    expect(await stage.work()).toEqual(['completed'])
  })

  it('is refused at its declaration without a deadline or a definition, and under the name of another kind', async () => {
    const { latchkey } = await stageOf()
    const declare = (options: unknown, definition: unknown = async () => undefined) =>
      latchkey.deferred('exports.wrong', options as { deadlineMs: number }, definition as never)
    for (const options of [undefined, {}]) expect(() => declare(options)).toThrow('exports.wrong: needs deadlineMs')
    for (const deadlineMs of [0, Infinity, '1']) {
      expect(() => declare({ deadlineMs })).toThrow('exports.wrong: deadlineMs must be a number above 0')
    }
    expect(() => declare({ deadlineMs: 1, version: 0 })).toThrow('version must be a whole number from 1')
    expect(() => declare({ deadlineMs: 1 }, null)).toThrow('a deferred operation needs its definition')
    expect(() => latchkey.phased('exports.create', { version: 1 }, async () => undefined as never)).toThrow(
      'is declared as deferred and as phased',
    )
    expect(latchkey[engine].kinds.get('exports.create')).toBe('deferred')
    expect(latchkey[engine].retentionOf('exports.create')).toMatchObject({ retentionMs: 86_400_000, outcomeVersion: 1 })
  })
}

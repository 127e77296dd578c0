/** Rows that this version cannot read, met by requests, operators, the status resource and workers. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { engine } from '../../../src/engine/internal.ts'
import type { SpoilableHarness } from '@latchkey/conformance'
import { exchangeStatus } from '../../../src/http/exchange/answers/status.ts'
import { renderRefusal } from '../../../src/http/exchange/answers/refusal.ts'
import { silentTelemetry } from '../../../src/ports/telemetry.ts'
import type { Store } from '../../../src/ports/store.ts'
import { createWorkers } from '../../../src/workers/workers.ts'
import { act, answered, eventually, executeRequest, idOf, latchkeyOn, operationName } from '../fixture.ts'
import { recordingTelemetry, type TestLatchkey, told } from '../fixture.ts'

const beside = 40
const outcome = { status: 201, headers: [], body: Buffer.from('{}'), version: 0 }

interface Scene {
  readonly harness: SpoilableHarness
  readonly store: Store
  readonly telemetry: ReturnType<typeof recordingTelemetry>
  readonly latchkey: TestLatchkey
}

export function unreadableCases(openHarness: () => Promise<SpoilableHarness>): void {
  let opened: Scene
  beforeEach(async () => {
    const harness = await openHarness()
    const store = await harness.open()
    const telemetry = recordingTelemetry()
    opened = { harness, store, telemetry, latchkey: latchkeyOn(store, { telemetry, scope: () => 'acme' }) }
  })
  afterEach(async () => {
    await opened.latchkey.close()
    await opened.harness.close()
  })
  for (const cases of [batchCases, answerCases, operatorCases, workerCases]) cases(() => opened)
}

const work = async () => answered(201)

function batchCases(scene: () => Scene): void {
  it('hurt nobody but who asks for them, however often, and are no failure of the store', async () => {
    const operation = scene().latchkey.guarded(operationName, { onFailure: 'hold', onStoreDown: 'run-unprotected' })
    expect(told(await operation[engine].execute(executeRequest('bad'), work))).toBe('executed 201 yes')
    await scene().harness.spoil(idOf('bad'), 'outcome-format')
    let runs = 0
    for (let round = 0; round < 10; round += 1) {
      const keys = Array.from({ length: beside }, (_, index) => `round ${round} ${index}`)
      const bad = () => operation[engine].execute(executeRequest('bad'), async () => answered(200 + (runs += 1)))
      const [first, last, ...others] = await Promise.all([
        bad(),
        bad(),
        ...keys.map(key => operation[engine].execute(executeRequest(key), work)),
      ])
      expect([first, last].map(told)).toEqual(['refused row-unreadable', 'refused row-unreadable'])
      expect(new Set(others.map(told))).toEqual(new Set(['executed 201 yes']))
    }
    expect(runs).toBe(0)
    expect([scene().telemetry.counted('scene().store.error'), scene().telemetry.counted('unprotected')]).toEqual([0, 0])
  })
}

function answerCases(scene: () => Scene): void {
  it('run nothing of any kind, and say so truly over HTTP and to functions', async () => {
    const atomic = scene().latchkey.atomic('orders.create')
    const phased = scene().latchkey.phased('pay', { version: 1 }, async () => outcome)
    const deferred = scene().latchkey.deferred('report', { version: 1, deadlineMs: 60_000 }, async () => outcome)
    const given = { scope: 'acme', key: 'bad', input: {} }
    await atomic.run(given, () => 'done')
    await phased.run(given)
    await deferred.run(given)
    for (const name of ['orders.create', 'pay', 'report']) await scene().harness.spoil(idOf('bad', name), 'state')
    const runs = [atomic.run(given, () => 'again'), phased.run(given), deferred.run(given)]
    await Promise.all(runs.map(run => expect(run).rejects.toMatchObject({ code: 'row-unreadable' })))
    const guarded = scene().latchkey.guarded(operationName, { onFailure: 'hold' })
    await guarded[engine].execute(executeRequest('bad'), work)
    await scene().harness.spoil(idOf('bad'), 'outcome-missing')
    const answer = await guarded[engine].execute(executeRequest('bad'), work)
    if (answer.kind !== 'refused') throw new Error(told(answer))
    const host = { http: {}, telemetry: silentTelemetry }
    const { status, headers, body } = renderRefusal(answer.refusal, { host, context: undefined, accept: false })
    expect([status, new Map(headers).get('Retry-After')]).toEqual([503, '30'])
    const problem = JSON.parse(Buffer.from(body).toString())
    expect(problem).toMatchObject({ type: 'urn:latchkey:problem:row-unreadable' })
    expect(problem.detail).toMatch(/cannot read the record .* This request executed nothing/)
    const asked = { context: undefined, path: `/operations/${idOf('bad', 'pay')}` }
    expect((await exchangeStatus(scene().latchkey, asked, {})).status).toBe(503)
  })
}

function operatorCases(scene: () => Scene): void {
  it('are listed, inspected and forgotten, and not settled', async () => {
    const operation = scene().latchkey.guarded(operationName, { onFailure: 'hold' })
    for (const key of ['good', 'bad']) await operation[engine].execute(executeRequest(key), work)
    await scene().harness.spoil(idOf('bad'), 'state')
    const row = { id: idOf('bad') }
    const { records } = await scene().latchkey.list()
    expect(records.map(({ state }) => state).toSorted()).toEqual(['completed', 'unreadable'])
    expect((await scene().latchkey.inspect(row)).record).toMatchObject({
      state: 'unreadable',
      why: expect.stringMatching(/holds 7/),
    })
    const verdict = { kind: 'happened', status: 201, json: {} } as const
    expect(await scene().latchkey.settle(row, verdict, act)).toEqual({ kind: 'wrong-state', state: 'unreadable' })
    expect(await scene().latchkey.forget(row, act)).toEqual({ kind: 'forgotten' })
    expect((await scene().latchkey.inspect(row)).audit).toMatchObject([{ act: 'forget', by: act.by }])
    expect(told(await operation[engine].execute(executeRequest('bad'), work))).toBe('executed 201 yes')
  })
}

function workerCases(scene: () => Scene): void {
  it('are parked by workers where it is their journal, and the others are resumed', async () => {
    const options = { version: 1, retentionMs: 3_600_000 }
    const held = scene().latchkey.phased('pay', options, async x => {
      await x.effect('charge', { timeoutMs: 1_000, dedup: { windowMs: 3_600_000 } }, async () => 'charged')
      return outcome
    })
    const claim = async (key: string) => {
      const { identity } = executeRequest(key)
      const id = idOf(key, 'pay')
      const won = await scene().store.claim({
        ...executeRequest(key),
        identity: { ...identity, id, operation: 'pay' },
        claimId: id,
        recovery: 'resume',
        leaseMs: 60_000,
        expiresInMs: 3_600_000,
        work: { version: 1, input: '{}' },
      })
      if (won.kind !== 'won') throw new Error('not granted')
      const intent = { position: 0, name: 'charge', epoch: 0, key: id, windowMs: 3_600_000 }
      await scene().store.steps?.openIntent(won.claim, intent, 60_000)
      return id
    }
    const bad = await claim('bad')
    const good = await claim('good')
    await scene().harness.spoil(bad, 'step')
    await scene().harness.advance(120_000)
    const workers = createWorkers(scene().latchkey, { only: ['resumer'], resumer: { everyMs: 10 } })
    workers.start()
    await eventually(async () => (await scene().store.read(good))?.state === 'completed')
    await eventually(async () => (await scene().store.read(bad))?.parked === true)
    await workers.stop()
    expect(await scene().store.read(bad)).toMatchObject({
      state: 'failed_retryable',
      lastErrorCode: 'journal-unreadable',
    })
    const asked = { context: undefined, path: `/operations/${bad}` }
    expect((await exchangeStatus(scene().latchkey, asked, {})).status).toBe(503)
    expect(held.name).toBe('pay')
  })
}

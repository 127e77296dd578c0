import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engine } from '../../../src/engine/internal.ts'
import { systemClock } from '../../../src/ports/clock.ts'
import type { Store } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { leapingClock } from '../fake-clock.ts'
import {
  answered,
  brief,
  eventually,
  executeRequest,
  faultyStore,
  gate,
  idOf,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  rowOf,
  runRequest,
  type TestLatchkey,
  told,
} from '../fixture.ts'

let clock: ReturnType<typeof leapingClock>
let store: Store
let open: TestLatchkey[]
let runs: number

beforeEach(() => {
  clock = leapingClock()
  store = memoryStore({ clock })
  open = []
  runs = 0
})
afterEach(async () => {
  for (const latchkey of open) await latchkey.close()
})

function guarded(
  options: { onInProgress?: 'refuse' | 'wait'; waitMs?: number; onFailure?: 'hold' | 'rerun'; leaseMs?: number } = {},
  on = store,
) {
  const telemetry = recordingTelemetry()
  const latchkey = latchkeyOn(on, { telemetry })
  open.push(latchkey)
  return { telemetry, latchkey, operation: latchkey.guarded(operationName, { onFailure: 'hold', ...options }) }
}

function countOf(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}

describe('fifty requests at once', () => {
  it('give one execution and forty-nine refusals, spread over two instances', async () => {
    const instances = [guarded(), guarded()]
    const { opened, open: letGo } = gate()
    const work = async () => {
      runs += 1
      await opened
      return answered(201)
    }
    let ended = 0
    const answers = Array.from({ length: 50 }, async (_, index) => {
      const answer = await instances[index % 2]?.operation[engine].execute(executeRequest('k'), work)
      ended += 1
      return answer === undefined ? 'none' : told(answer)
    })
    await eventually(() => ended === 49)
    letGo()
    expect(countOf(await Promise.all(answers))).toEqual({ 'executed 201 yes': 1, 'refused in-progress': 49 })
    expect(runs).toBe(1)
  })

  it('give one execution over an expired row, and over a dead lease under rerun', async () => {
    const { operation } = guarded({ onFailure: 'rerun', ...brief })
    await operation.run(runRequest('expired'), () => 'old')
    const { identity, fingerprint } = executeRequest('dead')
    const claimId = '00000000-0000-4000-8000-000000000001'
    await store.claim({
      identity,
      fingerprint,
      claimId,
      recovery: 'rerun',
      leaseMs: 600,
      expiresInMs: 900_000,
      description: undefined,
    })
    clock.leap(3 * brief.retentionMs)
    for (const key of ['expired', 'dead']) {
      runs = 0
      const work = async () => {
        runs += 1
        return answered(201)
      }
      await Promise.all(Array.from({ length: 50 }, () => operation[engine].execute(executeRequest(key), work)))
      expect({ key, runs, fence: (await rowOf(store, key)).fence }).toEqual({ key, runs: 1, fence: 2 })
    }
  })
})

describe('wait mode', () => {
  it('gives fifty callers one execution and forty-nine replays of the same value', async () => {
    const instances = [guarded({ onInProgress: 'wait' }), guarded({ onInProgress: 'wait' })]
    const { opened, open: letGo } = gate()
    const handler = async () => {
      runs += 1
      await opened
      return { run: runs }
    }
    const values = Array.from({ length: 25 }).flatMap(() =>
      instances.map(({ operation }) => operation.run(runRequest('k'), handler)),
    )
    const counted = (metric: string) => instances.reduce((sum, { telemetry }) => sum + telemetry.counted(metric), 0)
    await eventually(() => counted('reserve.in_progress') >= 49)
    // Long enough for each to have looked again.
    await new Promise(resolve => setTimeout(resolve, 200))
    letGo()
    for (const value of await Promise.all(values)) expect(value).toEqual({ run: 1 })
    expect(runs).toBe(1)
    expect([counted('reserve.in_progress'), counted('reserve.created')]).toEqual([49, 1])
    expect(instances.reduce((sum, { telemetry }) => sum + telemetry.counted('reserve.replay'), 0)).toBe(49)
  })

  it('is woken by its twin in the same process, without waiting for the next poll', async () => {
    const faulty = faultyStore(store)
    // No timer of this clock comes to its end, so that only the twin can end the wait.
    const frozen = { ...systemClock, after: (_: number, run: () => void) => systemClock.after(2 ** 30, run) }
    const latchkey = latchkeyOn(faulty.store, { clock: frozen })
    const operation = latchkey.guarded(operationName, { onFailure: 'hold', onInProgress: 'wait' })
    const { opened, open: letGo } = gate()
    const first = operation.run(runRequest('k'), () => opened.then(() => 'done'))
    await eventually(() => faulty.calls.claim === 1)
    const second = operation.run(runRequest('k'), () => 'again')
    await eventually(() => faulty.calls.claim === 2)
    letGo()
    expect(await Promise.all([first, second])).toEqual(['done', 'done'])
    expect(faulty.calls.claim).toBe(3)
  })

  it('tells its caller that the handler begins, and tells one that was answered from the row nothing', async () => {
    const { operation } = guarded({ onInProgress: 'wait' })
    const started: string[] = []
    const ask = (caller: string) =>
      operation[engine].execute(executeRequest('k', { onStart: () => void started.push(caller) }), async () =>
        answered(201),
      )
    expect(told(await ask('first'))).toBe('executed 201 yes')
    expect(told(await ask('second'))).toBe('replayed 201')
    expect(started).toEqual(['first'])
  })

  it('ends in in-progress when its time is over, and leaves the owner’s row alone', async () => {
    const { operation } = guarded({ onInProgress: 'wait', waitMs: 300 })
    const { opened, open: letGo } = gate()
    const owner = operation.run(runRequest('k'), () => opened.then(() => 'done'))
    await eventually(async () => (await store.read(idOf('k'))) !== undefined)
    const before = await rowOf(store, 'k')
    await expect(operation.run(runRequest('k'), () => 'again')).rejects.toMatchObject({ code: 'in-progress' })
    const { leaseLeftMs: _, ageMs: _age, ...row } = await rowOf(store, 'k')
    expect(before).toMatchObject(row)
    letGo()
    expect(await owner).toBe('done')
  })

  it('takes over when the owner dies and the row allows it', async () => {
    const { operation } = guarded({ onInProgress: 'wait', onFailure: 'rerun' })
    const { identity, fingerprint } = executeRequest('k')
    const claimId = '00000000-0000-4000-8000-000000000001'
    await store.claim({
      identity,
      fingerprint,
      claimId,
      recovery: 'rerun',
      leaseMs: 30_000,
      expiresInMs: 900_000,
      description: undefined,
    })
    const waiting = operation.run(runRequest('k'), ({ attempt }) => `attempt ${attempt}`)
    clock.leap(30_000)
    expect(await waiting).toBe('attempt 2')
  })

  it('answers unknown when the owner dies and the row does not allow it', async () => {
    const { operation } = guarded({ onInProgress: 'wait' })
    const { identity, fingerprint } = executeRequest('k')
    const claimId = '00000000-0000-4000-8000-000000000001'
    await store.claim({
      identity,
      fingerprint,
      claimId,
      recovery: 'hold',
      leaseMs: 30_000,
      expiresInMs: 900_000,
      description: undefined,
    })
    const waiting = operation.run(runRequest('k'), () => 'again')
    clock.leap(30_000)
    await expect(waiting).rejects.toMatchObject({ code: 'outcome-unknown' })
  })

  it('turns away the 101st waiter of a key at once', async () => {
    const { operation, telemetry } = guarded({ onInProgress: 'wait', waitMs: 60_000 })
    const { opened, open: letGo } = gate()
    const owner = operation.run(runRequest('k'), () => opened.then(() => 'done'))
    let refused = 0
    const others = Array.from({ length: 130 }, async () => {
      try {
        return await operation.run(runRequest('k'), () => 'again')
      } catch (error) {
        expect(error).toMatchObject({ code: 'in-progress' })
        refused += 1
        return 'refused'
      }
    })
    await eventually(() => telemetry.counted('reserve.in_progress') >= 130 && refused > 0)
    expect(refused).toBeGreaterThanOrEqual(20)
    letGo()
    const values = countOf(await Promise.all(others))
    expect(values['again']).toBeUndefined()
    expect(values['done']).toBe(130 - refused)
    expect(await owner).toBe('done')
  })
})

describe('a key reused for another request', () => {
  it('is told so at once, also while the first runs and also in wait mode', async () => {
    for (const onInProgress of ['refuse', 'wait'] as const) {
      const { operation } = guarded({ onInProgress, waitMs: 60_000 })
      const { opened, open: letGo } = gate()
      const first = operation.run(runRequest(onInProgress), () => opened.then(() => 'done'))
      const misuse = () => operation.run(runRequest(onInProgress, { amount: 2 }), () => 'other')
      await expect(misuse()).rejects.toMatchObject({ code: 'key-reused' })
      letGo()
      await first
      await expect(misuse()).rejects.toMatchObject({ code: 'key-reused' })
      expect(await operation.run(runRequest(onInProgress), () => 'again')).toBe('done')
    }
  })

  it('is not run over a dead lease or a failed row either', async () => {
    const { operation } = guarded({ onFailure: 'rerun' })
    await operation.run(runRequest('k'), () => Promise.reject(new Error('x'))).catch(() => {})
    await expect(operation.run(runRequest('k', { amount: 2 }), () => 'other')).rejects.toMatchObject({
      code: 'key-reused',
    })
  })
})

it('keeps two scopes and two operations apart, whatever the key', async () => {
  const { latchkey, operation } = guarded()
  const refunds = latchkey.guarded('refunds.create', { onFailure: 'hold' })
  expect(await operation.run(runRequest('k'), () => 'first')).toBe('first')
  expect(await operation.run({ ...runRequest('k'), scope: 'other' }, () => 'second')).toBe('second')
  expect(await refunds.run(runRequest('k'), () => 'third')).toBe('third')
})

it('takes the key of another operation for misuse where one key spans them, also with an equal input', async () => {
  const { latchkey } = guarded()
  const wide = { onFailure: 'hold', keyNamespace: 'scope' } as const
  const orders = latchkey.guarded('orders.create', wide)
  const refunds = latchkey.guarded('refunds.create', wide)
  expect(await orders.run(runRequest('k'), () => 'order')).toBe('order')
  await expect(refunds.run(runRequest('k'), () => 'refund')).rejects.toMatchObject({ code: 'key-reused' })
  expect(await orders.run(runRequest('k'), () => 'again')).toBe('order')
})

import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { leapingClock } from './fake-clock.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import type { Store } from '../../src/ports/store.ts'
import {
  answered,
  brief,
  delayed,
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
} from './fixture.ts'

const open: TestLatchkey[] = []
afterEach(async () => {
  for (const latchkey of open.splice(0)) await latchkey.close()
})

function guarded(
  store: Store,
  options: { leaseMs?: number; holdMsMax?: number } = {},
  telemetry = recordingTelemetry(),
) {
  const latchkey = latchkeyOn(store, { telemetry })
  open.push(latchkey)
  return {
    latchkey,
    telemetry,
    operation: latchkey.guarded(operationName, { ...brief, onFailure: 'hold', ...options }),
  }
}

/** Counts how many renewals run at once. */
function watched(inner: Store, spanMs: number) {
  const seen = { beats: 0, now: 0, most: 0 }
  const store: Store = {
    ...inner,
    async heartbeat(claim, leaseMs) {
      seen.beats += 1
      seen.now += 1
      seen.most = Math.max(seen.most, seen.now)
      await pause(spanMs)
      seen.now -= 1
      return inner.heartbeat(claim, leaseMs)
    },
  }
  return { store, seen }
}

describe('a handler three leases long', () => {
  it('keeps its claim, with one renewal in flight at a time', async () => {
    const inner = memoryStore()
    // Longer than a beat's distance, so that overlapping beats would show.
    const { store, seen } = watched(inner, 450)
    const { operation } = guarded(store, { leaseMs: 1_200 })
    let runs = 0
    const value = await operation.run(runRequest('slow'), async ({ signal }) => {
      runs += 1
      const until = performance.now() + 3_800
      while (performance.now() < until) {
        await inner.sweep({ limit: 10 })
        await pause(20)
      }
      expect(signal.aborted).toBe(false)
      return 'done'
    })
    expect(value).toBe('done')
    expect(await rowOf(inner, 'slow')).toMatchObject({ state: 'completed', fence: 1, crashes: 0 })
    expect(seen.most).toBe(1)
    expect(seen.beats).toBeGreaterThanOrEqual(2)
    expect(runs).toBe(1)
  })

  it('keeps it also while the outcome is being stored', async () => {
    const faulty = faultyStore()
    const { operation } = guarded(faulty.store)
    faulty.break('complete', delayed(1_500))
    const running = operation.run(runRequest('slow store'), () => 'done')
    let over = false
    void running.then(() => {
      over = true
    })
    await eventually(async () => {
      await faulty.inner.sweep({ limit: 10 })
      return over
    })
    expect(await running).toBe('done')
    expect(faulty.calls.heartbeat).toBeGreaterThanOrEqual(2)
    expect(await rowOf(faulty.inner, 'slow store')).toMatchObject({ state: 'completed', crashes: 0 })
    expect((await faulty.inner.inspect(idOf('slow store'))).evidence).toEqual([])
  })

  it('writes no heartbeat when the handler is quick', async () => {
    const faulty = faultyStore()
    const { operation } = guarded(faulty.store)
    await operation.run(runRequest('quick'), () => 'done')
    await pause(500)
    expect(faulty.calls.heartbeat).toBe(0)
  })

  it('plans no further heartbeat when one was on its way as the handler ended', async () => {
    const faulty = faultyStore()
    const { operation } = guarded(faulty.store)
    faulty.break('heartbeat', delayed(200))
    await operation.run(runRequest('ends'), () => eventually(() => faulty.calls.heartbeat === 1))
    await pause(900)
    expect(faulty.calls.heartbeat).toBe(1)
  })

  it('survives a heartbeat that fails', async () => {
    const faulty = faultyStore()
    const { operation } = guarded(faulty.store)
    faulty.break('heartbeat', [() => Promise.reject(new Error('hiccup'))])
    const value = await operation.run(runRequest('hiccup'), async () => {
      await eventually(() => faulty.calls.heartbeat >= 3)
      return 'done'
    })
    expect(value).toBe('done')
    expect(await rowOf(faulty.inner, 'hiccup')).toMatchObject({ state: 'completed', fence: 1 })
  })
})

it('ends its heartbeats when it is closed, also under a handler that goes on', async () => {
  const faulty = faultyStore()
  const { latchkey, operation } = guarded(faulty.store)
  const { opened, open: letGo } = gate()
  const running = operation.run(runRequest('stuck'), () => opened)
  await eventually(() => faulty.calls.heartbeat >= 1)
  expect(await latchkey.close({ timeoutMs: 50 })).toEqual({ drained: false, unstored: 0 })
  // One beat may have been on its way.
  await pause(100)
  const { heartbeat } = faulty.calls
  await pause(700)
  expect(faulty.calls.heartbeat).toBe(heartbeat)
  letGo()
  await running
})

it('still limits the hold of a handler that goes on after a close before its first heartbeat', async () => {
  const faulty = faultyStore()
  const { latchkey, operation } = guarded(faulty.store, { holdMsMax: 900 })
  const running = operation[engine].execute(executeRequest('outlives'), async ({ signal }) => {
    expect(await latchkey.close({ timeoutMs: 10 })).toEqual({ drained: false, unstored: 0 })
    expect(faulty.calls.heartbeat).toBe(0)
    await eventually(() => signal.aborted)
    expect(signal.reason).toMatchObject({ message: expect.stringContaining('holdMsMax (900 ms)') })
    return answered(201)
  })
  expect(told(await running)).toBe('executed 201 yes')
})

describe('a claim that is lost', () => {
  it('aborts the signal and counts one loss', async () => {
    const clock = leapingClock()
    const inner = memoryStore({ clock })
    const { operation, telemetry } = guarded(inner)
    const answer = await operation[engine].execute(executeRequest('lost'), async ({ signal }) => {
      clock.leap(10_000)
      await inner.sweep({ limit: 1 })
      await inner.settle(idOf('lost'), { kind: 'never-happened' }, { by: 'on-call', reason: 'test' }, 1_000)
      await eventually(() => signal.aborted)
      expect(signal.reason).toMatchObject({ code: 'claim-lost' })
      return answered(201)
    })
    // The row waits for a retry: our own success is not sent.
    expect(told(answer)).toBe('refused in-progress')
    expect(telemetry.counted('claim_lost')).toBe(1)
    expect((await inner.inspect(idOf('lost'))).evidence.at(-1)).toMatchObject({ source: 'late-owner', applied: false })
  })

  it('shows an aborted signal, with its reason, to a handler that first looks after the loss', async () => {
    const clock = leapingClock()
    const inner = memoryStore({ clock })
    const faulty = faultyStore(inner)
    const { operation } = guarded(faulty.store)
    await operation[engine].execute(executeRequest('looks-late'), async execution => {
      clock.leap(10_000)
      await inner.sweep({ limit: 1 })
      await inner.settle(idOf('looks-late'), { kind: 'never-happened' }, { by: 'on-call', reason: 'test' }, 1_000)
      const before = faulty.calls.heartbeat
      await eventually(() => faulty.calls.heartbeat > before)
      await pause(20)
      expect(execution.signal.aborted).toBe(true)
      expect(execution.signal.reason).toMatchObject({ code: 'claim-lost' })
      expect(execution.signal).toBe(execution.signal)
      return answered(201)
    })
  })

  it('aborts the signal after the maximum hold, beats no more, and still takes a late answer', async () => {
    const faulty = faultyStore()
    const { operation } = guarded(faulty.store, { holdMsMax: 900 })
    let after = 0
    const answer = await operation[engine].execute(executeRequest('held'), async ({ signal }) => {
      await eventually(() => signal.aborted)
      expect(signal.reason).toMatchObject({
        code: 'claim-lost',
        message: expect.stringContaining('holdMsMax (900 ms)'),
      })
      // One beat may have been on its way.
      await pause(50)
      after = faulty.calls.heartbeat
      await eventually(async () => (await rowOf(faulty.inner, 'held')).leaseLeftMs < -100)
      return answered(201)
    })
    expect(faulty.calls.heartbeat).toBe(after)
    expect(after).toBeGreaterThanOrEqual(1)
    expect(told(answer)).toBe('executed 201 yes')
    expect(await rowOf(faulty.inner, 'held')).toMatchObject({ state: 'completed', fence: 1 })
  })

  it('takes a late answer as evidence when the row was already swept to unknown', async () => {
    const clock = leapingClock()
    const inner = memoryStore({ clock })
    const { operation } = guarded(inner, { leaseMs: 600 })
    const answer = await operation[engine].execute(executeRequest('late'), async () => {
      clock.leap(10_000)
      expect(await inner.sweep({ limit: 1 })).toMatchObject([{ to: 'unknown' }])
      return answered(201)
    })
    expect(told(answer)).toBe('executed 201 yes')
    const { record, evidence } = await inner.inspect(idOf('late'))
    expect(record).toMatchObject({ state: 'completed' })
    expect(evidence).toMatchObject([{ source: 'late-owner', verdict: 'happened', applied: true }])
  })
})

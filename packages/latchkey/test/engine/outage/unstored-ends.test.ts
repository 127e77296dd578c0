import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { outcomeUnknown } from '../../../src/ports/errors.ts'
import type { Attempt } from '../../../src/engine/answer.ts'
import { engine } from '../../../src/engine/internal.ts'
import type { Lease } from '../../../src/engine/run/lease.ts'
import { storeCalls } from '../../../src/engine/store/call.ts'
import { type UnstoredEnds, unstoredEnds } from '../../../src/engine/outage/unstored-ends.ts'
import { waiters } from '../../../src/engine/run/admit.ts'
import type { OwnerResult } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { type FakeClock, fakeClock } from '../fake-clock.ts'
import {
  answered,
  executeRequest,
  type FaultyStore,
  faultyStore,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  rejects,
  rowOf,
  told,
  type TestLatchkey,
} from '../fixture.ts'

let clock: FakeClock
let faulty: FaultyStore
let telemetry: ReturnType<typeof recordingTelemetry>
let latchkey: TestLatchkey
let runs: number

beforeEach(() => {
  clock = fakeClock()
  faulty = faultyStore(memoryStore({ clock }))
  telemetry = recordingTelemetry()
  latchkey = latchkeyOn(faulty.store, { clock, telemetry })
  runs = 0
})
afterEach(async () => {
  const closed = latchkey.close({ timeoutMs: 1 })
  clock.advance(1)
  await closed
})

const operation = (onFailure: 'hold' | 'rerun' = 'hold') =>
  latchkey.guarded(operationName, { onFailure, leaseMs: 30_000 })

const work =
  (attempt: Attempt = answered(201)) =>
  async () => {
    runs += 1
    return attempt
  }

/** Time passes in steps, and everything that follows from each of them happens. */
async function pass(spanMs: number, stepMs = 250): Promise<void> {
  for (let passedMs = 0; passedMs < spanMs; passedMs += stepMs) {
    clock.advance(Math.min(stepMs, spanMs - passedMs))
    await new Promise(setImmediate)
  }
}

/** The handler ran, and the store was away when it ended. */
async function endInOutage(
  key: string,
  { onFailure = 'hold', attempt }: { onFailure?: 'hold' | 'rerun'; attempt?: Attempt } = {},
) {
  for (const method of ['complete', 'fail', 'heartbeat'] as const) faulty.break(method, rejects)
  const answer = operation(onFailure)[engine].execute(executeRequest(key), work(attempt))
  await pass(6_000)
  return told(await answer)
}

describe('an outcome that could not be stored within five seconds', () => {
  it('is stored when the store is back, and the retry replays it', async () => {
    expect(await endInOutage('k')).toBe('executed 201 failed')
    faulty.mend()
    await pass(3_000)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'completed', fence: 1 })
    expect(told(await operation()[engine].execute(executeRequest('k'), work()))).toBe('replayed 201')
    expect(runs).toBe(1)
  })

  it('settles its row that was swept to unknown meanwhile, as the late owner’s evidence', async () => {
    await endInOutage('k')
    await pass(120_000, 1_000)
    expect(await faulty.inner.sweep({ limit: 10 })).toHaveLength(1)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'unknown' })
    faulty.mend()
    await pass(3_000)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'completed' })
    expect((await faulty.inner.inspect((await rowOf(faulty.inner, 'k')).id)).evidence).toMatchObject([
      { source: 'late-owner', verdict: 'happened', applied: true },
    ])
  })

  it('keeps its lease for the maximum hold where only the lease can be renewed, and no longer', async () => {
    await endInOutage('k')
    faulty.mend()
    faulty.break('complete', rejects)
    await pass(600_000, 1_000)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'in_progress' })
    expect((await rowOf(faulty.inner, 'k')).leaseLeftMs).toBeGreaterThan(0)
    await pass(400_000, 1_000)
    expect((await rowOf(faulty.inner, 'k')).leaseLeftMs).toBeLessThanOrEqual(0)
    expect(clock.timers()).toBe(0)
    expect(telemetry.told.join()).toContain('within holdMsMax')
  })

  it('is dropped and counted when the claim was taken over, and the winner’s outcome stays', async () => {
    await endInOutage('k', { onFailure: 'rerun' })
    await pass(120_000, 1_000)
    const { identity, fingerprint } = executeRequest('k')
    const other = await faulty.inner.claim({
      ...{ identity, fingerprint, claimId: 'other', recovery: 'rerun', leaseMs: 30_000, expiresInMs: 900_000 },
      description: undefined,
    })
    expect(other.kind).toBe('won')
    faulty.mend()
    await pass(3_000)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'in_progress', claimId: 'other' })
    expect(telemetry.counted('claim_lost')).toBe(1)
  })
})

describe('a verdict that could not be stored', () => {
  it('that it is unknown holds the row, also where a dead lease would let it run again', async () => {
    const attempt = { kind: 'threw', error: outcomeUnknown(new Error('socket hang up')) } as const
    expect(await endInOutage('k', { onFailure: 'rerun', attempt })).toBe('refused outcome-unknown')
    faulty.mend()
    await pass(3_000)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'unknown' })
    expect(told(await operation('rerun')[engine].execute(executeRequest('k'), work()))).toBe('refused outcome-unknown')
    expect(runs).toBe(1)
  })

  it('that nothing happened frees the key', async () => {
    await endInOutage('k', { onFailure: 'rerun', attempt: answered(503) })
    faulty.mend()
    await pass(3_000)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'failed_retryable' })
  })
})

describe('close', () => {
  it('waits for the store to take what is left, within its time', async () => {
    await endInOutage('k')
    const closed = latchkey.close({ timeoutMs: 10_000 })
    await pass(3_000)
    faulty.mend()
    await pass(3_000)
    expect(await closed).toEqual({ drained: true, unstored: 0 })
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'completed' })
  })

  it('says how many it loses, in its result and in a report', async () => {
    await Promise.all([endInOutage('k'), endInOutage('l')])
    const closed = latchkey.close({ timeoutMs: 5_000 })
    await pass(6_000)
    expect(await closed).toEqual({ drained: true, unstored: 2 })
    expect(telemetry.told.join()).toContain('closed with 2 outcomes')
    expect(clock.timers()).toBe(0)
  })
})

describe('what is kept in memory', () => {
  let ends: UnstoredEnds
  let down: boolean
  let ended: number
  beforeEach(() => {
    down = true
    ended = 0
    const calls = storeCalls({ storeName: 'memory', timeoutMs: 2_000, clock, telemetry })
    const closing = new AbortController().signal
    ends = unstoredEnds({ store: faulty.store, calls, clock, telemetry, closing, waiters: waiters(clock) })
  })

  function keep(bytes: number, write: () => Promise<OwnerResult> = async () => 'written'): boolean {
    const lease: Lease = {
      signal: () => new AbortController().signal,
      leftMs: () => 0,
      isHandedOver: false,
      end: () => void (ended += 1),
    }
    const claim = { id: 'id', fence: 1, claimId: clock.randomId() }
    const written = () => (down ? Promise.reject(new Error('connection terminated')) : write())
    return ends.keep({ claim, operation: operationName, bytes, lease, holdMsMax: 900_000, write: written })
  }

  it('is at most a thousand ends; one more is reported and left to its recovery', async () => {
    for (let n = 0; n < 1_000; n++) expect(keep(1_000)).toBe(true)
    expect(keep(1_000)).toBe(false)
    expect(telemetry.told.join()).toContain('no memory left to hold it')
    down = false
    await pass(3_000)
    expect([ends.size(), ended]).toEqual([0, 1_000])
    expect(keep(1_000)).toBe(true)
  })

  it('is at most 64 MiB, and what was stored makes room', async () => {
    const mebibyte = 1_024 * 1_024
    for (let n = 0; n < 64; n++) expect(keep(mebibyte)).toBe(true)
    expect(ends.bytesLeft()).toBe(0)
    expect(keep(1)).toBe(false)
    down = false
    await pass(3_000)
    expect(ends.bytesLeft()).toBe(64 * mebibyte)
  })

  it('is stored although one of them never can be', async () => {
    keep(1, () => Promise.reject(new Error('value too long')))
    for (let n = 0; n < 100; n++) keep(1)
    down = false
    await pass(5_000)
    expect(ends.size()).toBe(1)
  })
})

it('keeps that it happened where there is no room for the body', async () => {
  const big = Buffer.alloc(1_000_000, 'x').toString()
  for (const method of ['complete', 'heartbeat'] as const) faulty.break(method, rejects)
  const keys = Array.from({ length: 70 }, (_, n) => `k${n}`)
  const large = latchkey.guarded(operationName, { onFailure: 'hold' })
  const answers = Promise.all(keys.map(key => large[engine].execute(executeRequest(key), work(answered(201, big)))))
  await pass(6_000)
  expect(new Set((await answers).map(told))).toEqual(new Set(['executed 201 failed']))
  faulty.mend()
  await pass(10_000)
  const outcomes = await Promise.all(keys.map(async key => (await rowOf(faulty.inner, key)).outcome))
  expect(outcomes.map(outcome => outcome?.status)).toEqual(keys.map(() => 201))
  const whole = outcomes.filter(outcome => outcome?.body !== undefined)
  expect(whole).toHaveLength(67)
})

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engine } from '../../../src/engine/internal.ts'
import {
  answered,
  delayed,
  eventually,
  executeRequest,
  type FaultyStore,
  faultyStore,
  hangsAfter,
  idOf,
  latchkeyOn,
  losesReply,
  never,
  operationName,
  recordingTelemetry,
  rejects,
  rowOf,
  runRequest,
  type TestLatchkey,
  told,
} from '../fixture.ts'

let faulty: FaultyStore
let latchkey: TestLatchkey
let telemetry: ReturnType<typeof recordingTelemetry>
let runs: number

beforeEach(() => {
  faulty = faultyStore()
  telemetry = recordingTelemetry()
  latchkey = latchkeyOn(faulty.store, { storeTimeoutMs: 200, telemetry })
  runs = 0
})
afterEach(() => latchkey.close({ timeoutMs: 1_000 }))

const operation = (options: { leaseMs?: number; onStoreDown?: 'refuse' | 'run-unprotected' } = {}) =>
  latchkey.guarded(operationName, { onFailure: 'hold', ...options })

const work = async () => {
  runs += 1
  return answered(201)
}

describe('a claim whose reply is lost', () => {
  it.each([
    ['with the connection', losesReply],
    ['for ever', hangsAfter],
  ])('%s, but was applied: it is found by its claimId and runs once', async (_, fault) => {
    faulty.break('claim', [fault])
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('replayed 201')
    expect(runs).toBe(1)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'completed', fence: 1, attempts: 1 })
  })

  it('and is applied after the caller was answered 503: it is released, and never becomes unknown', async () => {
    faulty.break('claim', [delayed(600)])
    const answer = await operation()[engine].execute(executeRequest('k'), work)
    expect(told(answer)).toBe('refused store-unavailable')
    expect(answer).toMatchObject({ refusal: { retryAfterMs: 1_000 } })
    await eventually(async () => (await faulty.inner.read(idOf('k'))) !== undefined)
    await eventually(async () => (await rowOf(faulty.inner, 'k')).state !== 'in_progress')
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'failed_retryable' })
    expect(runs).toBe(0)
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
  })

  it('and is applied when the undoing has long ended: it is released all the same', async () => {
    faulty.break('claim', [delayed(2_500)])
    const brief = operation({ leaseMs: 1_000 })
    expect(told(await brief[engine].execute(executeRequest('k'), work))).toBe('refused store-unavailable')
    await eventually(async () => (await faulty.inner.read(idOf('k'))) !== undefined)
    await eventually(async () => (await rowOf(faulty.inner, 'k')).state === 'failed_retryable', 5_000)
    expect(told(await brief[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
    expect(runs).toBe(1)
  })

  it('is no reason to warn of a leak when many of them are undone at once', async () => {
    const warnings: string[] = []
    const listen = (warning: Error) => void warnings.push(warning.name)
    process.on('warning', listen)
    const keys = Array.from({ length: 12 }, (_, n) => `k${n}`)
    faulty.break(
      'claim',
      keys.map(() => delayed(600)),
    )
    const answers = await Promise.all(keys.map(key => operation()[engine].execute(executeRequest(key), work)))
    expect(new Set(answers.map(told))).toEqual(new Set(['refused store-unavailable']))
    for (const key of keys)
      await eventually(async () => (await faulty.inner.read(idOf(key)))?.state === 'failed_retryable')
    process.off('warning', listen)
    expect(warnings).toEqual([])
  })

  it('and cannot be read back either: it is released although it was applied at once', async () => {
    faulty.break('claim', [losesReply])
    faulty.break('read', [rejects])
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('refused store-unavailable')
    await eventually(async () => (await rowOf(faulty.inner, 'k')).state === 'failed_retryable')
    expect(runs).toBe(0)
  })

  it('is released by a later try when the first release fails too', async () => {
    faulty.break('claim', [losesReply])
    faulty.break('read', [rejects])
    faulty.break('releaseMany', [rejects, rejects])
    await operation()[engine].execute(executeRequest('k'), work)
    await eventually(async () => (await rowOf(faulty.inner, 'k')).state === 'failed_retryable')
    expect(faulty.calls.releaseMany).toBe(3)
  })

  it('is released at once when Latchkey closes', async () => {
    faulty.break('claim', [losesReply])
    faulty.break('read', [rejects])
    await operation()[engine].execute(executeRequest('k'), work)
    await latchkey.close()
    await eventually(async () => (await rowOf(faulty.inner, 'k')).state === 'failed_retryable', 5_000)
  })

  it('never touches the claim of another request', async () => {
    const { inner } = faulty
    const { identity, fingerprint } = executeRequest('k')
    const claim = {
      identity,
      fingerprint,
      claimId: '00000000-0000-4000-8000-000000000001',
      recovery: 'hold',
      leaseMs: 30_000,
      expiresInMs: 90_000,
      description: undefined,
    } as const
    await inner.claim(claim)
    faulty.break('claim', [losesReply])
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('refused store-unavailable')
    await eventually(() => faulty.calls.releaseMany >= 2)
    expect(await rowOf(inner, 'k')).toMatchObject({ state: 'in_progress', claimId: claim.claimId, fence: 1 })
  })
})

describe('a store that is down', () => {
  it('is answered 503 within the time of two store calls when it never answers', async () => {
    for (const method of ['claim', 'read', 'releaseMany'] as const) faulty.break(method, never)
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('refused store-unavailable')
    // Each of them waits for its limit.
    expect({ claim: faulty.calls.claim, read: faulty.calls.read, runs }).toEqual({ claim: 1, read: 1, runs: 0 })
  })

  it('makes run reject with store-unavailable and the cause', async () => {
    faulty.break('claim', rejects)
    faulty.break('read', rejects)
    await expect(operation().run(runRequest('k'), () => 1)).rejects.toMatchObject({
      code: 'store-unavailable',
      retryAfterMs: 1_000,
      cause: { cause: { message: 'connection terminated' } },
    })
  })

  it('is not asked again by a crowd, and serves again without a restart', async () => {
    for (const method of ['claim', 'read', 'releaseMany'] as const) faulty.break(method, rejects)
    for (let requests = 0; requests < 20; requests++)
      await operation()[engine].execute(executeRequest(`k${requests}`), work)
    expect(faulty.calls.claim).toBeLessThan(10)
    expect(runs).toBe(0)
    faulty.mend()
    await eventually(
      async () =>
        told(await operation()[engine].execute(executeRequest('after'), work)) !== 'refused store-unavailable',
    )
    expect(runs).toBe(1)
  })

  it('runs unprotected where the operation allows that, and counts it', async () => {
    for (const method of ['claim', 'read', 'releaseMany'] as const) faulty.break(method, rejects)
    const lenient = operation({ onStoreDown: 'run-unprotected' })
    expect(told(await lenient[engine].execute(executeRequest('k'), work))).toBe('executed 201 unprotected')
    expect(telemetry.counted('unprotected')).toBe(1)
  })

  it('at the sweep of a dead lease: answers 503 and does not run', async () => {
    const { identity, fingerprint } = executeRequest('k')
    const claimId = '00000000-0000-4000-8000-000000000001'
    await faulty.inner.claim({
      identity,
      fingerprint,
      claimId,
      recovery: 'hold',
      leaseMs: 1,
      expiresInMs: 90_000,
      description: undefined,
    })
    await eventually(async () => (await rowOf(faulty.inner, 'k')).leaseLeftMs <= 0)
    faulty.break('sweep', rejects)
    expect(told(await operation({ onStoreDown: 'run-unprotected' })[engine].execute(executeRequest('k'), work))).toBe(
      'refused store-unavailable',
    )
    expect(runs).toBe(0)
  })
})

describe('storing the outcome', () => {
  it('is tried again after a failure', async () => {
    faulty.break('complete', [rejects, rejects])
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
    expect(faulty.calls.complete).toBe(3)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'completed' })
  })

  it.each([
    ['with the connection', losesReply],
    ['for ever', hangsAfter],
  ])('whose reply is lost %s is found stored', async (_, fault) => {
    faulty.break('complete', [fault])
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
    expect(told(await operation()[engine].execute(executeRequest('k'), work))).toBe('replayed 201')
    expect(runs).toBe(1)
  })

  it('that fails for long sends the real answer, marked, and stores it when the store is back', async () => {
    faulty.break('complete', rejects)
    const brief = operation({ leaseMs: 1_000 })
    expect(told(await brief[engine].execute(executeRequest('k'), work))).toBe('executed 201 failed')
    expect(telemetry.counted('outcome.store_failed')).toBe(1)
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'in_progress', fence: 1 })
    expect(faulty.calls).toMatchObject({ releaseMany: 0, fail: 0 })
    faulty.mend()
    await eventually(async () => (await rowOf(faulty.inner, 'k')).state === 'completed')
    expect(told(await brief[engine].execute(executeRequest('k'), work))).toBe('replayed 201')
    expect(runs).toBe(1)
  })

  it('that never answers is bounded, and the value still reaches the caller', async () => {
    faulty.break('complete', never)
    faulty.break('heartbeat', never)
    expect(await operation({ leaseMs: 1_000 }).run(runRequest('k'), () => 'charged')).toBe('charged')
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'in_progress' })
  })
})

import { beforeEach, describe, expect, it } from 'vitest'
import { unavailable } from '../../../src/engine/answer.ts'
import { guardedChecks } from '../../../src/engine/option-checks.ts'
import { settingsOf } from '../../../src/engine/options.ts'
import { claimThenRun } from '../../../src/engine/run/claim.ts'
import { createCore } from '../../../src/engine/runtime.ts'
import { storeCalls } from '../../../src/engine/store/call.ts'
import { type UncertainClaims, uncertainClaims } from '../../../src/engine/outage/uncertain-claims.ts'
import type { ClaimRequest, LostClaim, Store } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { type FakeClock, fakeClock } from '../fake-clock.ts'
import { executeRequest, idOf, recordingTelemetry } from '../fixture.ts'

const leaseMs = 30_000

let clock: FakeClock
let inner: Store
let down: boolean
let asked: (readonly LostClaim[])[]
let closing: AbortController
let uncertain: UncertainClaims
let telemetry: ReturnType<typeof recordingTelemetry>

beforeEach(() => {
  clock = fakeClock()
  inner = memoryStore({ clock })
  down = true
  asked = []
  closing = new AbortController()
  telemetry = recordingTelemetry()
  const calls = storeCalls({ storeName: 'memory', timeoutMs: 2_000, clock, telemetry })
  uncertain = uncertainClaims({ store: store(), calls, clock, telemetry, closing: closing.signal })
})

function store(): Store {
  return {
    ...inner,
    async releaseMany(claims) {
      asked.push(claims)
      if (down) throw new Error('connection terminated')
      return inner.releaseMany(claims)
    },
  }
}

function request(key: string): ClaimRequest {
  const { identity, fingerprint } = executeRequest(key)
  return {
    ...{ identity, fingerprint, claimId: clock.randomId(), recovery: 'hold', leaseMs, expiresInMs: 90_000 },
    description: undefined,
  }
}

/** Time passes in steps, and everything that follows from each of them happens. */
async function pass(spanMs: number, stepMs = 100): Promise<void> {
  for (let passedMs = 0; passedMs < spanMs; passedMs += stepMs) {
    clock.advance(Math.min(stepMs, spanMs - passedMs))
    await new Promise(setImmediate)
  }
}

const stateOf = async (key: string) => (await inner.read(idOf(key)))?.state

describe('a claim in doubt', () => {
  it('is remembered through an outage of any length, and released when the store is back', async () => {
    const lost = request('k')
    await inner.claim(lost)
    uncertain.remember(lost, undefined)
    await pass(10 * leaseMs, 1_000)
    expect(await inner.sweep({ limit: 10 })).toHaveLength(1)
    expect(await stateOf('k')).toBe('unknown')
    down = false
    await pass(3_000)
    expect(await stateOf('k')).toBe('failed_retryable')
    expect(uncertain.size()).toBe(0)
  })

  it('that is granted after the store was back is released, too: it is looked for until a lease has passed', async () => {
    const lost = request('k')
    uncertain.remember(lost, undefined)
    down = false
    await pass(leaseMs / 2)
    expect(uncertain.size()).toBe(1)
    await inner.claim(lost)
    await pass(6_000)
    expect(await stateOf('k')).toBe('failed_retryable')
    expect(uncertain.size()).toBe(0)
  })

  it('that was never granted is forgotten when a lease has passed since the store was back', async () => {
    uncertain.remember(request('k'), undefined)
    await pass(2 * leaseMs, 1_000)
    expect(uncertain.size()).toBe(1)
    down = false
    await pass(leaseMs + 10_000)
    expect(uncertain.size()).toBe(0)
    const looks = asked.length
    await pass(leaseMs)
    expect(asked).toHaveLength(looks)
    expect(clock.timers()).toBe(0)
  })

  it('is forgotten when the store says after all that it was not granted', async () => {
    const other = request('k')
    await inner.claim(other)
    const lost = request('k')
    uncertain.remember(lost, inner.claim(lost))
    await pass(100)
    expect(uncertain.size()).toBe(0)
    expect(await stateOf('k')).toBe('in_progress')
  })

  it('is asked about once more at a shutdown, and then left', async () => {
    const lost = request('k')
    await inner.claim(lost)
    uncertain.remember(lost, undefined)
    uncertain.remember(request('never granted'), undefined)
    down = false
    const flushed = uncertain.flush()
    await pass(200)
    await flushed
    expect(await stateOf('k')).toBe('failed_retryable')
    expect(uncertain.size()).toBe(0)
  })
})

describe('many claims in doubt', () => {
  it('are released in batches of a thousand', async () => {
    const claims = Array.from({ length: 2_500 }, (_, n) => request(`k${n}`))
    for (const lost of claims) await inner.claim(lost)
    for (const lost of claims) uncertain.remember(lost, undefined)
    down = false
    await pass(1_000)
    expect(asked.map(batch => batch.length)).toEqual([1_000, 1_000, 500])
    expect(uncertain.size()).toBe(0)
  })

  it('are at most a hundred thousand: then new claims are refused before they are sent, and that is reported once', async () => {
    const lost = request('k')
    for (let n = 0; n < 99_999; n++) uncertain.remember({ ...lost, claimId: `claim ${n}` }, undefined)
    expect(uncertain.isFull).toBe(false)
    uncertain.remember(lost, undefined)
    expect([uncertain.isFull, uncertain.isFull]).toEqual([true, true])
    expect(telemetry.told.filter(entry => String(entry).includes('are uncertain'))).toHaveLength(1)
    down = false
    await pass(leaseMs + 120_000, 1_000)
    expect(uncertain.isFull).toBe(false)
    expect(uncertain.size()).toBe(0)
  })

  it('keep a guarded claim from being sent, and the answer is 503: not executed', async () => {
    const core = createCore({ store: inner, clock, telemetry, storeTimeoutMs: 2_000, maintenance: false })
    const full = { ...core, uncertain: { ...core.uncertain, isFull: true } }
    const once = claimThenRun<unknown, unknown, string>(full, settingsOf('o', { onFailure: 'hold' }, guardedChecks), {
      recovery: 'hold',
      run: () => expect.unreachable('a claim that was not sent is not granted'),
      storeDown: async ({ cause, inDoubt }) => unavailable(cause, inDoubt),
    })
    const { identity, fingerprint, description } = request('k')
    const answer = await once({ identity, fingerprint, description, key: 'k' }, 'work')
    expect(answer).toMatchObject({ refusal: { code: 'store-unavailable', maybeAccepted: false } })
    expect(await stateOf('k')).toBeUndefined()
  })
})

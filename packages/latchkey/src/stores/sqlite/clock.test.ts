import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../test/sqlite/fixture.ts'
import { claimRequest, hourMs, identity, outcome } from '../../../test/sqlite/requests.ts'
import type { ClaimRequest } from '../../ports/store.ts'
import type { SqliteStore } from './index.ts'

const leaseMs = 30_000

let harness: SqliteHarness
let store: SqliteStore
beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  store = await harness.open()
})
afterEach(async () => {
  vi.useRealTimers()
  await harness.close()
})

const request = (over: Partial<ClaimRequest> = {}): ClaimRequest => ({
  ...claimRequest(1),
  ...{ recovery: 'rerun', leaseMs, ...over },
})

async function own(over: Partial<ClaimRequest> = {}) {
  const result = await store.claim(request(over))
  if (result.kind !== 'won') throw new Error('expected the claim to be granted')
  return result.claim
}

/** SQLite reads the machine's clock itself; only the application's `Date` is off meanwhile. */
async function withClockOff<T>(offsetMs: number, work: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offsetMs })
  try {
    return await work()
  } finally {
    vi.useRealTimers()
  }
}

async function expectWholeLease(): Promise<void> {
  const left = (await store.read(identity(1).id))?.leaseLeftMs
  expect(left).toBeGreaterThan(leaseMs / 2)
  expect(left).toBeLessThanOrEqual(leaseMs)
}

describe.each([
  ['an hour fast', hourMs],
  ['an hour slow', -hourMs],
])('an application clock that is %s', (_, offsetMs) => {
  it('grants a lease of the length that was asked for', async () => {
    await withClockOff(offsetMs, () => own())
    await expectWholeLease()
  })

  it('renews a lease by the length that was asked for', async () => {
    const claim = await own()
    expect(await withClockOff(offsetMs, () => store.heartbeat(claim, leaseMs))).toBe('written')
    await expectWholeLease()
  })

  it('takes over and sweeps no lease that lasts, and shows what is left of it', async () => {
    await own()
    await withClockOff(offsetMs, async () => {
      expect(await store.claim(request())).toMatchObject({ kind: 'seen', record: { state: 'in_progress' } })
      await expectWholeLease()
      expect(await store.sweep({ limit: 10 })).toEqual([])
      expect(await store.sweep({ limit: 10, id: identity(1).id })).toEqual([])
    })
  })

  it('takes over and sweeps a lease that ran out', async () => {
    await own()
    await harness.advance(leaseMs + 1)
    await withClockOff(offsetMs, async () => {
      expect(await store.claim(request())).toMatchObject({ kind: 'won', from: 'dead-lease' })
      await expectWholeLease()
      await harness.advance(leaseMs + 1)
      expect(await store.sweep({ limit: 10 })).toHaveLength(1)
    })
  })

  it('keeps an answer for as long as was promised, and reaps it then', async () => {
    const claim = await own({ expiresInMs: 1 })
    await withClockOff(offsetMs, async () => {
      await store.complete(claim, outcome('done'), leaseMs)
      expect(await store.read(claim.id)).toMatchObject({ state: 'completed', expired: false })
      expect(await store.reap({ limit: 10 })).toBe(0)
      await harness.advance(leaseMs + 1)
      expect(await store.read(claim.id)).toMatchObject({ expired: true })
      expect(await store.reap({ limit: 10 })).toBe(1)
    })
  })

  it('counts quarantine, look-ups and deadlines by the clock of the store', async () => {
    const claim = await own({ recovery: 'hold' })
    const work = { version: 1, input: '{}', deadlineInMs: hourMs / 2 }
    await withClockOff(offsetMs, async () => {
      const { reconciliation, steps } = store
      await store.fail(claim, { to: 'unknown', errorCode: 'TimeoutError', dueInMs: 0 })
      const firstInMs = hourMs / 2
      const look = () => reconciliation.lookups({ operation: 'orders.create', firstInMs, leaseMs, limit: 10 })
      expect(await look()).toEqual([])
      const never = { source: 'ledger', ref: 'a', verdict: { kind: 'never-happened' } } as const
      const kept = await reconciliation.keep({ id: claim.id, effect: undefined }, never)
      if (kept.kind !== 'kept') throw new Error(kept.kind)
      const applied = await reconciliation.apply(kept.evidenceId, { quarantineMs: hourMs / 2, retentionMs: hourMs })
      expect(applied).toMatchObject({ kind: 'too-early' })
      await store.enqueue({ ...request({ identity: identity(2) }), work })
      expect(await steps.readJournal(identity(2).id)).toMatchObject({ overdue: false })
      await harness.advance(hourMs / 2)
      expect(await look()).toHaveLength(1)
      expect(await steps.readJournal(identity(2).id)).toMatchObject({ overdue: true })
    })
  })
})

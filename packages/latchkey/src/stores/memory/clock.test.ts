import { describe, expect, it } from 'vitest'
import { systemClock } from '../../ports/clock.ts'
import { memoryStore } from './index.ts'

describe('memory store', () => {
  it('ends no lease and no row when the wall clock is set an hour forward', async () => {
    let wallMs = Date.UTC(2026, 0, 1)
    const store = memoryStore({ clock: { ...systemClock, nowMs: () => wallMs } })
    const request = {
      identity: { id: systemClock.randomId(), scope: 'tenant', operation: 'pay' },
      claimId: systemClock.randomId(),
      fingerprint: new Uint8Array(32),
      recovery: 'rerun',
      leaseMs: 30_000,
      expiresInMs: 60_000,
      description: undefined,
    } as const
    expect(await store.claim(request)).toMatchObject({ kind: 'won' })
    wallMs += 3_600_000
    expect(await store.claim(request)).toMatchObject({ kind: 'seen', record: { state: 'in_progress' } })
    expect(await store.sweep({ limit: 10 })).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { runStoreCases } from '../../conformance/index.ts'
import type { StoreHarness } from '../../conformance/index.ts'
import { systemClock } from '../../ports/clock.ts'
import { memoryStore } from './index.ts'

async function memoryHarness(): Promise<StoreHarness> {
  // Stands still unless told to move: the edges, where nothing is left, are met exactly.
  let nowMs = Date.UTC(2026, 0, 1)
  const store = memoryStore({ clock: { ...systemClock, nowMs: () => nowMs, monotonicMs: () => nowMs } })
  return {
    open: async () => store,
    advance: async ms => {
      nowMs += ms
    },
    close: async () => {},
  }
}

describe('memory store', () => {
  runStoreCases(memoryHarness, it, ['transactional', 'many-processes'])

  it('agrees with the model, whatever callers do', () => checkStoreModel(memoryHarness, { numRuns: 1_000 }))

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

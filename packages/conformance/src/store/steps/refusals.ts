/** How an owner of phased work loses the right to write, and that nothing it writes afterwards is taken. */
import assert from 'node:assert/strict'
import type { Claim, OwnerResult } from 'latchkey'
import type { StoreHarness } from '../../store-harness.ts'
import { answer, leaseMs, minuteMs, notKnown, recordOf, retentionMs, retryNow, still } from '../fixture.ts'
import { type StepsFixture, stepsOf } from './fixture.ts'

export type OwnerCalls<Fixture> = Record<string, (fixture: Fixture, claim: Claim) => Promise<OwnerResult>>

export const losses: Record<string, (harness: StoreHarness, fixture: StepsFixture, claim: Claim) => Promise<unknown>> =
  {
    failed: (_harness, { store }, claim) => store.fail(claim, retryNow),
    unknown: (_harness, { store }, claim) => store.fail(claim, notKnown),
    completed: (_harness, { store }, claim) => store.complete(claim, answer(), retentionMs),
    parked: (_harness, { store }, claim) => store.park(claim, 'poison'),
    released: (_harness, { store }, claim) => store.release(claim.id, claim.claimId),
    swept: async (harness, { store }) => {
      await harness.advance(leaseMs + minuteMs)
      return store.sweep({ limit: 10 })
    },
  }

export interface Refused {
  readonly claim: Claim
  /** The row's, which may be another than the claim's. */
  readonly id: string
  readonly why: string
}

export async function assertRefused<Fixture extends StepsFixture>(
  fixture: Fixture,
  calls: OwnerCalls<Fixture>,
  { claim, id, why }: Refused,
): Promise<void> {
  const before = still(await recordOf(fixture.store, id))
  const steps = await stepsOf(fixture.steps, id)
  for (const [call, write] of Object.entries(calls)) {
    assert.equal(await write(fixture, claim), 'claim-lost', `${call} of an owner that is ${why}`)
    assert.deepEqual(still(await recordOf(fixture.store, id)), before, `${call} of an owner that is ${why}`)
    assert.deepEqual(await stepsOf(fixture.steps, id), steps, `${call} of an owner that is ${why}`)
  }
}

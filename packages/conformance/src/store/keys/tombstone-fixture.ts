/** Rows with a tombstone, and what remains visible of one whose outcome is deleted. */
import assert from 'node:assert/strict'
import type { Claim, ClaimRequest, KeyRecord, Store } from 'latchkey'
import type { StoreHarness } from '../../store-harness.ts'
import { answer, expiresInMs, hourMs, own, retentionMs } from '../fixture.ts'

/** Longer than the retention, so that the two cannot be confused. */
export const tombstoneMs: number = 3 * expiresInMs
export const pastRetentionMs: number = expiresInMs + hourMs

export async function completed(store: Store, key: string, over: Partial<ClaimRequest> = {}): Promise<Claim> {
  const claim = await own(store, key, { tombstoneMs, ...over })
  assert.equal(await store.complete(claim, answer(), retentionMs), 'written')
  return claim
}

/** Past its retention, with its tombstone still retained. */
export async function goneRow(harness: StoreHarness, store: Store, key: string): Promise<Claim> {
  const claim = await completed(store, key)
  await harness.advance(pastRetentionMs)
  return claim
}

export function assertGone(record: KeyRecord, claim: Claim): void {
  const { state, gone, expired, outcome, fence, claimId } = record
  assert.deepEqual(
    { state, gone, expired, outcome, fence, claimId },
    {
      ...{ state: 'completed', gone: true, expired: false, outcome: undefined },
      ...{ fence: claim.fence, claimId: claim.claimId },
    },
  )
}

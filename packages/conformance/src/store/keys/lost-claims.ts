/** Claims whose replies were lost, released many at a time. */
import assert from 'node:assert/strict'
import type { Claim, LostClaim } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { evidenceOf, finding, happened, storeEvidence, never, openReconciling, whole } from '../reconcile/fixture.ts'
import { assertNextFence, assertState, identity, leaseMs, minuteMs, newClaimId, own } from '../fixture.ts'
import { recordOf, request, rowIn, won } from '../fixture.ts'
import { openSteps, ownPhased } from '../steps/fixture.ts'

const lost = ({ id, claimId }: Claim): LostClaim => ({ id, claimId })
const idsOf = (claims: readonly Claim[]) => claims.map(({ claimId }) => claimId).toSorted()

export const lostClaimCases: readonly StoreCase[] = [
  {
    name: 'releases a thousand lost claims in one call, passes over what was never granted, and grants each again at once',
    async run(harness) {
      const store = await harness.open()
      const keys = Array.from({ length: 500 }, (_, n) => `lost ${n}`)
      const claims = await Promise.all(keys.map(key => own(store, key)))
      const unheardOf = keys.map(key => ({ id: identity(`never ${key}`).id, claimId: newClaimId() }))
      const over = await store.releaseMany([...claims.map(lost), ...unheardOf])
      assert.deepEqual([...over].toSorted(), idsOf(claims))
      for (const key of keys.slice(0, 20)) {
        const again = won(await store.claim(request(key)))
        assert.deepEqual([again.from, again.attempt], ['failed_retryable', 2])
        const [before] = claims.filter(({ id }) => id === again.claim.id)
        assertNextFence(store, before?.fence ?? 0, again.claim.fence)
      }
      assert.deepEqual(await store.releaseMany([]), [])
    },
  },
  {
    name: 'settles a row that was swept to unknown under a lost claim as never started, with evidence',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'swept')
      await harness.advance(leaseMs + minuteMs)
      assert.equal((await store.sweep({ limit: 10 })).length, 1)
      await assertState(store, claim.id, 'unknown')
      assert.deepEqual(await store.releaseMany([lost(claim)]), [claim.claimId])
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.parked, record.dueInMs <= 0], ['failed_retryable', false, true])
      assert.deepEqual(await evidenceOf(store, claim.id), ['late-owner: never-happened, applied'])
      const state = { limit: 10, state: 'unknown' } as const
      assert.deepEqual((await store.list(state)).records, [])
      // The reply to the first call was lost: the same call again reports nothing more.
      assert.deepEqual(await store.releaseMany([lost(claim)]), [claim.claimId])
      assert.equal((await store.inspect(claim.id)).evidence.length, 1)
      assert.equal(won(await store.claim(request('swept'))).from, 'failed_retryable')
    },
  },
  {
    name: 'leaves an unknown row to the reconciler when kept evidence says that it happened, not when it denies it',
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      const confirmed = await rowIn.unknown(harness, store, 'confirmed')
      const denied = await rowIn.unknown(harness, store, 'denied')
      await storeEvidence(store, whole(confirmed), finding(happened))
      await storeEvidence(store, whole(denied), finding(never))
      assert.deepEqual(await store.releaseMany([lost(confirmed), lost(denied)]), [denied.claimId])
      await assertState(store, confirmed.id, 'unknown')
      await assertState(store, denied.id, 'failed_retryable')
    },
  },
  {
    name: 'touches no row of another claim, whoever is in the same call',
    async run(harness) {
      const store = await harness.open()
      const mine = await own(store, 'mine')
      const others = [
        await rowIn.in_progress(harness, store, 'running'),
        await rowIn.completed(harness, store, 'done'),
        await rowIn.unknown(harness, store, 'unknown'),
      ]
      const before = await Promise.all(others.map(({ id }) => recordOf(store, id)))
      const asked = others.map(({ id }) => ({ id, claimId: newClaimId() }))
      const finished = others.filter((_, n) => n === 1).map(lost)
      assert.deepEqual(await store.releaseMany([...asked, lost(mine), ...finished]), [mine.claimId])
      for (const [n, { state, claimId, fence }] of before.entries()) {
        const after = await recordOf(store, others[n]?.id ?? '')
        assert.deepEqual([after.state, after.claimId, after.fence], [state, claimId, fence])
      }
    },
  },
  {
    name: 'leaves phased work to its workers, also when its claim was lost',
    needs: ['steps'],
    async run(harness) {
      const { store } = await openSteps(harness)
      const claim = await ownPhased(store, 'phased')
      assert.deepEqual(await store.releaseMany([lost(claim)]), [])
      await assertState(store, claim.id, 'in_progress')
    },
  },
]

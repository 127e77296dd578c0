/** What the owner of a look-up may write about an unknown row, and for how long. */
import assert from 'node:assert/strict'
import type { LookupClaim } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, assertAbout, assertNextFence, expiresInMs, hourMs, minuteMs, newClaimId } from '../fixture.ts'
import { recordOf, request, retentionMs, retryNow, rowIn, seen, still, won } from '../fixture.ts'
import { applying, claimOf, evidenceOf, finding, givenUp, happened, storeEvidence, lookUp } from './fixture.ts'
import { lookupLeaseMs, never, onlyLookup, quarantineMs, presentEvidence, whole, openReconciling } from './fixture.ts'

/** Look-ups that resemble the owner's and are not. */
function impostors(lookup: LookupClaim): readonly LookupClaim[] {
  const own = claimOf(lookup)
  return [
    { ...own, look: own.look + 1 },
    { ...own, look: own.look - 1 },
    { ...own, fence: own.fence + 1 },
    { ...own, fence: own.fence - 1 },
    { ...own, id: newClaimId() },
  ]
}

export const lookingCases: readonly StoreCase[] = [
  {
    name: 'grants the next look-up, with a higher number, when the lease of one ran out, and refuses the old one',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      const first = await onlyLookup(store)
      await harness.advance(lookupLeaseMs - 2 * minuteMs)
      assert.deepEqual(await lookUp(store), [])
      await harness.advance(3 * minuteMs)
      const second = await onlyLookup(store)
      assert.ok(second.look > first.look, `${second.look} after ${first.look}`)
      assert.deepEqual([second.tries, second.fence], [2, first.fence])
      const before = still(await recordOf(store, claim.id))
      assert.equal(await reconciliation.postpone(claimOf(first), hourMs), 'claim-lost')
      assert.equal(await reconciliation.giveUp(claimOf(first), 'unresolved'), 'claim-lost')
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened, { source: 'look-up' }))
      const stale = await reconciliation.apply(evidenceId, { ...applying, lookup: claimOf(first) })
      assert.deepEqual(stale, { kind: 'claim-lost' })
      assert.deepEqual(still(await recordOf(store, claim.id)), before)
      assert.deepEqual(await evidenceOf(store, claim.id), ['look-up: happened'])
      const counted = await reconciliation.apply(evidenceId, { ...applying, lookup: claimOf(second) })
      assert.deepEqual(counted, { kind: 'settled', to: 'completed' })
    },
  },
  {
    name: 'refuses the word of who has another number, another fence or another row',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const claim = await rowIn.unknown(harness, store, 'a')
      const lookup = await onlyLookup(store)
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened, { source: 'look-up' }))
      const before = still(await recordOf(store, claim.id))
      for (const impostor of impostors(lookup)) {
        assert.equal(await reconciliation.postpone(impostor, 0), 'claim-lost')
        assert.equal(await reconciliation.giveUp(impostor, 'unresolved'), 'claim-lost')
        const applied = await reconciliation.apply(evidenceId, { ...applying, lookup: impostor })
        assert.deepEqual(applied, { kind: 'claim-lost' })
      }
      assert.deepEqual(still(await recordOf(store, claim.id)), before)
      assert.deepEqual(await lookUp(store), [])
      assert.equal(await reconciliation.postpone(claimOf(lookup), 0), 'written')
    },
  },
  {
    name: 'makes a postponed look-up due when it was told, and counts the tries',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      const looks: number[] = []
      for (const tries of [1, 2, 3]) {
        const lookup = await onlyLookup(store)
        assert.deepEqual([lookup.tries, lookup.fence], [tries, claim.fence])
        looks.push(lookup.look)
        assert.equal(await reconciliation.postpone(claimOf(lookup), 3 * hourMs), 'written')
        assert.deepEqual(await lookUp(store), [])
        await harness.advance(2 * hourMs)
        assert.deepEqual(await lookUp(store), [], 'the lease is over, the time is not')
        await harness.advance(hourMs + minuteMs)
      }
      assert.deepEqual(
        looks.toSorted((left, right) => left - right),
        looks,
      )
      assert.equal(new Set(looks).size, 3)
    },
  },
  {
    name: 'makes a look-up that is postponed by nothing due at once, before its lease is over',
    async run(harness) {
      const store = await openReconciling(harness)
      await rowIn.unknown(harness, store, 'a')
      const first = await onlyLookup(store)
      await store.reconciliation.postpone(claimOf(first), 0)
      assert.equal((await onlyLookup(store)).tries, 2)
    },
  },
  {
    name: 'moves no quarantine by looking',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(quarantineMs - hourMs)
      const lookup = await onlyLookup(store)
      assertAbout(lookup.unknownForMs, quarantineMs - hourMs)
      await store.reconciliation.postpone(claimOf(lookup), 0)
      await harness.advance(2 * hourMs)
      assertAbout((await onlyLookup(store)).unknownForMs, quarantineMs + hourMs)
      assert.equal(await presentEvidence(store, whole(claim), never), 'settled')
    },
  },
  {
    name: 'refuses an early "never happened" of a look-up, which stays its owner\'s',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const claim = await rowIn.unknown(harness, store, 'a')
      const lookup = await onlyLookup(store)
      const evidenceId = await storeEvidence(store, whole(claim), finding(never, { source: 'look-up' }))
      const early = await reconciliation.apply(evidenceId, { ...applying, lookup: claimOf(lookup) })
      assert.equal(early.kind, 'too-early')
      assert.equal(await reconciliation.postpone(claimOf(lookup), early.leftMs), 'written')
      await harness.advance(quarantineMs + minuteMs)
      const next = await onlyLookup(store)
      const fresh = await storeEvidence(store, whole(claim), finding(never, { source: 'look-up' }))
      const late = await reconciliation.apply(fresh, { ...applying, lookup: claimOf(next) })
      assert.deepEqual(late, { kind: 'settled', to: 'failed_retryable' })
    },
  },
  {
    name: 'parks a row that nobody can tell anything about, still unknown, and asks no more',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      const lookup = await onlyLookup(store)
      assert.equal(await store.reconciliation.giveUp(claimOf(lookup), 'unresolved'), 'written')
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.parked, record.lastErrorCode], ['unknown', true, 'unresolved'])
      assert.deepEqual([record.fence, record.claimId], [claim.fence, claim.claimId])
      await harness.advance(3 * expiresInMs)
      assert.deepEqual(await lookUp(store), [])
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      assert.deepEqual([seen(await store.claim(request('a'))).state], ['unknown'])
      const parked = (await store.list({ limit: 10, parked: true })).records.map(each => each.id)
      assert.deepEqual(parked, [claim.id])
    },
  },
  {
    name: 'makes a row that is unparked due at once, its tries counted anew, audited',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await store.reconciliation.postpone(claimOf(await onlyLookup(store)), 0)
      const last = await givenUp(store)
      assert.equal(last.tries, 2)
      assert.deepEqual(await store.unpark(claim.id, act), { kind: 'unparked' })
      const { record, audit } = await store.inspect(claim.id)
      assert.deepEqual([record?.state, record?.parked, record?.fence], ['unknown', false, claim.fence])
      assert.deepEqual(
        audit.map(entry => entry.act),
        ['unpark'],
      )
      const next = await onlyLookup(store, 9 * hourMs)
      assert.equal(next.tries, 1)
      assert.ok(next.look > last.look)
    },
  },
  {
    name: 'takes the parked mark from a row that its late owner settles after all',
    async run(harness) {
      const store = await openReconciling(harness)
      const done = await rowIn.unknown(harness, store, 'done')
      await givenUp(store)
      assert.equal(await store.complete(done, answer('late'), retentionMs), 'written')
      const undone = await rowIn.unknown(harness, store, 'undone')
      await givenUp(store)
      assert.equal(await store.fail(undone, retryNow), 'written')
      for (const { id } of [done, undone]) assert.equal((await recordOf(store, id)).parked, false)
      assert.deepEqual((await store.list({ limit: 10, parked: true })).records, [])
      assert.equal(won(await store.claim(request('undone'))).from, 'failed_retryable')
      await harness.advance(expiresInMs + hourMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
    },
  },
  {
    name: 'never repeats fence and number of a look-up when a row becomes unknown again, and counts its tries anew',
    async run(harness) {
      const store = await openReconciling(harness)
      const first = await rowIn.unknown(harness, store, 'a')
      const older = await onlyLookup(store)
      await store.reconciliation.postpone(claimOf(older), 0)
      const old = await onlyLookup(store)
      await store.settle(first.id, never, act, retentionMs)
      const second = await rowIn.unknown(harness, store, 'a')
      const next = await onlyLookup(store)
      assertNextFence(store, first.fence, second.fence)
      assert.deepEqual([next.fence, next.tries, next.attempts], [second.fence, 1, 2])
      const evidenceId = await storeEvidence(store, whole(second), finding(happened, { source: 'look-up' }))
      for (const stale of [older, old]) {
        assert.equal(await store.reconciliation.giveUp(claimOf(stale), 'unresolved'), 'claim-lost')
        const applied = await store.reconciliation.apply(evidenceId, { ...applying, lookup: claimOf(stale) })
        assert.deepEqual(applied, { kind: 'claim-lost' })
      }
      assert.equal((await recordOf(store, second.id)).parked, false)
    },
  },
]

/** What stored evidence does to an unknown row, and to no other. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { answer, assertNextFence, assertState, expiresInMs, hourMs, leaseMs, newClaimId, notKnown } from '../fixture.ts'
import { own, plain, recordOf, request, retentionMs, rowIn, seen, still, won } from '../fixture.ts'
import { applying, charged, chargeOf, declined, evidenceOf, finding, givenUp, happened } from './fixture.ts'
import { storeEvidence, message, never, quarantineMs, presentEvidence, whole, openReconciling } from './fixture.ts'

export const applyingCases: readonly StoreCase[] = [
  {
    name: 'completes an unknown row with the outcome that evidence tells, happened or declined, and the fence stays',
    async run(harness) {
      const store = await openReconciling(harness)
      for (const verdict of [happened, declined]) {
        const claim = await rowIn.unknown(harness, store, verdict.kind)
        const evidenceId = await storeEvidence(store, whole(claim), finding(verdict))
        const { reconciliation } = await openReconciling(harness)
        assert.deepEqual(await reconciliation.apply(evidenceId, applying), { kind: 'settled', to: 'completed' })
        const { record, audit } = await store.inspect(claim.id)
        assert.ok(record)
        assert.deepEqual([record.state, record.fence, record.claimId], ['completed', claim.fence, claim.claimId])
        assert.deepEqual([record.expired, record.gone, record.parked], [false, false, false])
        assert.deepEqual(record.outcome && plain(record.outcome), plain(verdict.outcome))
        assert.ok(record.completedAtMs !== undefined)
        assert.deepEqual(await evidenceOf(store, claim.id), [`ledger: ${verdict.kind}, applied`])
        assert.deepEqual(audit, [])
        assert.equal(seen(await store.claim(request(verdict.kind))).state, 'completed')
      }
    },
  },
  {
    name: 'lets an unknown row run again that never happened, after the quarantine, with the next fence',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(quarantineMs + hourMs)
      const evidenceId = await storeEvidence(store, whole(claim), finding(never))
      const applied = await store.reconciliation.apply(evidenceId, applying)
      assert.deepEqual(applied, { kind: 'settled', to: 'failed_retryable' })
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.fence, record.outcome], ['failed_retryable', claim.fence, undefined])
      assert.ok(record.dueInMs <= 0)
      assert.deepEqual(await evidenceOf(store, claim.id), ['ledger: never-happened, applied'])
      const next = won(await store.claim(request('a')))
      assert.equal(next.from, 'failed_retryable')
      assertNextFence(store, claim.fence, next.claim.fence)
    },
  },
  {
    name: 'applies a piece of evidence once, and says so afterwards',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
      await store.reconciliation.apply(evidenceId, applying)
      const before = still(await recordOf(store, claim.id))
      for (const { reconciliation } of [store, await openReconciling(harness)])
        assert.deepEqual(await reconciliation.apply(evidenceId, applying), { kind: 'applied-before' })
      assert.deepEqual(still(await recordOf(store, claim.id)), before)
      assert.deepEqual(await evidenceOf(store, claim.id), ['ledger: happened, applied'])
    },
  },
  {
    name: 'applies nothing to a row in another state, says which, and leaves the evidence kept',
    async run(harness) {
      const store = await openReconciling(harness)
      for (const state of ['in_progress', 'completed', 'failed_retryable'] as const) {
        const claim = await rowIn[state](harness, store, state)
        const before = still(await recordOf(store, claim.id))
        for (const verdict of [happened, declined, never]) {
          const evidenceId = await storeEvidence(store, whole(claim), finding(verdict))
          const applied = await store.reconciliation.apply(evidenceId, { ...applying, quarantineMs: 0 })
          assert.deepEqual(applied, { kind: 'not-applicable', state })
        }
        assert.deepEqual(still(await recordOf(store, claim.id)), before)
        const expected = ['ledger: declined', 'ledger: happened', 'ledger: never-happened']
        assert.deepEqual(await evidenceOf(store, claim.id), expected)
      }
    },
  },
  {
    name: 'applies what was told while the owner worked when its row became unknown, and not before',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await own(store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), message('m'))
      assert.equal((await store.reconciliation.apply(evidenceId, applying)).kind, 'not-applicable')
      await store.fail(claim, notKnown)
      const applied = await store.reconciliation.apply(evidenceId, applying)
      assert.deepEqual(applied, { kind: 'settled', to: 'completed' })
    },
  },
  {
    name: 'applies to guarded work no result of an effect and nothing that is about an effect',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(quarantineMs + hourMs)
      const before = still(await recordOf(store, claim.id))
      for (const [subject, verdict] of [
        [whole(claim), charged],
        [chargeOf(claim), charged],
        [chargeOf(claim), happened],
        [chargeOf(claim), never],
      ] as const) {
        const evidenceId = await storeEvidence(store, subject, finding(verdict))
        const applied = await store.reconciliation.apply(evidenceId, applying)
        assert.deepEqual(applied, { kind: 'not-applicable', state: 'unknown' })
      }
      assert.deepEqual(still(await recordOf(store, claim.id)), before)
    },
  },
  {
    name: 'applies no evidence that it never kept',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
      const unheardOf = /^\d+$/.test(evidenceId) ? String(Number(evidenceId) + 1_000) : newClaimId()
      const applied = await store.reconciliation.apply(unheardOf, applying)
      assert.deepEqual(applied, { kind: 'not-applicable', state: undefined })
    },
  },
  {
    name: 'never applies evidence of an earlier life of a key to a later one',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const claim = await rowIn.completed(harness, store, 'a')
      const old = [
        await storeEvidence(store, whole(claim), finding(happened)),
        await storeEvidence(store, whole(claim), message('m')),
        await storeEvidence(store, whole(claim), finding(never)),
      ]
      await harness.advance(expiresInMs + hourMs)
      const next = await rowIn.unknown(harness, store, 'a')
      assertNextFence(store, claim.fence, next.fence)
      const again = await reconciliation.keep(whole(next), message('m', hourMs))
      if ('evidenceId' in again) old.push(again.evidenceId)
      for (const evidenceId of old)
        assert.equal((await reconciliation.apply(evidenceId, { ...applying, quarantineMs: 0 })).kind, 'not-applicable')
      assert.deepEqual(await reconciliation.waiting({ limit: 10 }), [])
      await assertState(store, next.id, 'unknown')
      assert.equal(await presentEvidence(store, whole(next), happened), 'settled')
    },
  },
  {
    name: 'takes the parked mark from a row that evidence settles',
    async run(harness) {
      const store = await openReconciling(harness)
      for (const verdict of [happened, never]) {
        const claim = await rowIn.unknown(harness, store, verdict.kind)
        await givenUp(store)
        await harness.advance(quarantineMs + hourMs)
        assert.equal((await recordOf(store, claim.id)).parked, true)
        assert.equal(await presentEvidence(store, whole(claim), verdict), 'settled')
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.parked, record.fence], [false, claim.fence])
      }
      assert.deepEqual((await store.list({ limit: 10, parked: true })).records, [])
      assert.equal(won(await store.claim(request('never-happened'))).from, 'failed_retryable')
    },
  },
  {
    name: 'keeps an outcome that evidence told for the retention, however long the row was unknown',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(3 * expiresInMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.equal(await presentEvidence(store, whole(claim), happened), 'settled')
      await harness.advance(retentionMs - hourMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.equal(seen(await store.claim(request('a'))).expired, false)
      await harness.advance(2 * hourMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
    },
  },
  {
    name: 'refuses the late owner after evidence settled its row, and keeps its answer as evidence',
    async run(harness) {
      const store = await openReconciling(harness)
      for (const verdict of [happened, never]) {
        const claim = await rowIn.unknown(harness, store, verdict.kind)
        await harness.advance(quarantineMs + hourMs)
        assert.equal(await presentEvidence(store, whole(claim), verdict), 'settled')
        const before = still(await recordOf(store, claim.id))
        assert.equal(await store.complete(claim, answer('late'), retentionMs), 'claim-lost')
        assert.equal(await store.heartbeat(claim, leaseMs), 'claim-lost')
        assert.deepEqual(still(await recordOf(store, claim.id)), before)
        const expected = ['late-owner: happened', `ledger: ${verdict.kind}, applied`].toSorted()
        assert.deepEqual(await evidenceOf(store, claim.id), expected)
      }
    },
  },
]

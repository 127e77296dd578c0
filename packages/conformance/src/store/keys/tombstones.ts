/** A completed row whose outcome is deleted: known to have completed, and never run again while its tombstone is retained. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, assertNextFence, expiresInMs, hourMs, identity, newClaimId, notKnown } from '../fixture.ts'
import { otherFingerprint, own, recordOf, request, retentionMs, retryNow, seen, won } from '../fixture.ts'
import { finding, happened, openReconciling, storeEvidence, presentEvidence, whole } from '../reconcile/fixture.ts'
import { assertGone, completed, goneRow, pastRetentionMs, tombstoneMs } from './tombstone-fixture.ts'

export const tombstoneCases: readonly StoreCase[] = [
  {
    name: 'answers from a completed row with a tombstone for its whole retention, as from any other',
    async run(harness) {
      const store = await harness.open()
      await completed(store, 'a')
      await harness.advance(expiresInMs - hourMs)
      const record = seen(await store.claim(request('a')))
      assert.deepEqual([record.state, record.gone, record.expired], ['completed', false, false])
      assert.ok(record.outcome)
      assert.equal(await store.reap({ limit: 10 }), 0)
    },
  },
  {
    name: 'knows after the retention that the row is gone, and never grants it, whoever asks for it',
    async run(harness) {
      const store = await harness.open()
      const claim = await goneRow(harness, store, 'a')
      for (const stripped of [false, true]) {
        if (stripped) assert.equal(await store.reap({ limit: 10 }), 1)
        for (const fingerprint of [request('a').fingerprint, otherFingerprint])
          assertGone(seen(await store.claim(request('a', { fingerprint, recovery: 'rerun' }))), claim)
        assertGone(await recordOf(await harness.open(), claim.id), claim)
        const { record } = await store.inspect(claim.id)
        assert.ok(record)
        assertGone(record, claim)
        const [listed] = (await store.list({ limit: 10, state: 'completed' })).records
        assert.deepEqual([listed?.gone, listed?.expired], [true, false])
      }
    },
  },
  {
    name: 'strips a gone row once, keeps it gone, and deletes it when its tombstone is over',
    async run(harness) {
      const store = await harness.open()
      const claim = await goneRow(harness, store, 'a')
      assert.deepEqual([await store.reap({ limit: 10 }), await store.reap({ limit: 10 })], [1, 0])
      await harness.advance(tombstoneMs - 3 * hourMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      for (const fingerprint of [request('a').fingerprint, otherFingerprint])
        assertGone(seen(await store.claim(request('a', { fingerprint, recovery: 'rerun' }))), claim)
      await harness.advance(3 * hourMs)
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.gone, record.expired, record.outcome], [false, true, undefined])
      assert.deepEqual([await store.reap({ limit: 10 }), await store.reap({ limit: 10 })], [1, 0])
      assert.equal(await store.read(claim.id), undefined)
      assert.equal(won(await store.claim(request('a'))).from, 'none')
    },
  },
  {
    name: 'counts a row as absent when its tombstone is over, with the next fence, whether or not a reaper came by',
    async run(harness) {
      const store = await harness.open()
      for (const key of ['reaped between', 'never reaped']) {
        const claim = await goneRow(harness, store, key)
        if (key === 'reaped between') assert.equal(await store.reap({ limit: 10 }), 1)
        await harness.advance(tombstoneMs)
        assert.equal((await recordOf(store, claim.id)).expired, true, key)
        const next = won(await store.claim(request(key, { fingerprint: otherFingerprint })))
        assert.deepEqual([next.from, next.attempt], ['expired', 1], key)
        assertNextFence(store, claim.fence, next.claim.fence)
        await store.complete(next.claim, answer('second life'), retentionMs)
        await harness.advance(pastRetentionMs)
        assert.equal((await recordOf(store, claim.id)).expired, true, 'the second life asked for no tombstone')
        assert.equal(await store.reap({ limit: 10 }), 1)
      }
    },
  },
  {
    name: 'deletes a row at once whose retention and tombstone are both over',
    async run(harness) {
      const store = await harness.open()
      const claim = await completed(store, 'a')
      await harness.advance(pastRetentionMs + tombstoneMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
      assert.equal(await store.read(claim.id), undefined)
    },
  },
  {
    name: 'strips the evidence of a gone row, and keeps its audit',
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await own(store, 'a', { tombstoneMs })
      await store.fail(claim, notKnown)
      await store.settle(claim.id, happened, act, retentionMs)
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
      await harness.advance(pastRetentionMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
      const { record, evidence, audit } = await store.inspect(claim.id)
      assert.deepEqual([record?.gone, evidence, audit.length], [true, [], 1])
      const applied = await store.reconciliation.apply(evidenceId, { quarantineMs: 0, retentionMs })
      assert.equal(applied.kind, 'not-applicable')
    },
  },
  {
    name: 'keeps a tombstone of a row that evidence completed',
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await own(store, 'a', { tombstoneMs })
      await store.fail(claim, notKnown)
      assert.equal(await presentEvidence(store, whole(claim), happened), 'settled')
      await harness.advance(pastRetentionMs)
      assertGone(seen(await store.claim(request('a'))), claim)
    },
  },
  {
    name: 'keeps no tombstone of a row that failed: nothing happened, so nothing is gone',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { tombstoneMs })
      await store.fail(claim, retryNow)
      await harness.advance(pastRetentionMs)
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.gone, record.expired], [false, true])
      const next = won(await store.claim(request('a', { fingerprint: otherFingerprint })))
      assert.equal(next.from, 'expired')
      await store.fail(next.claim, retryNow)
      await harness.advance(pastRetentionMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
      assert.equal(await store.read(claim.id), undefined)
    },
  },
  {
    name: 'takes the tombstone from the grant that completed the row, not from one before it',
    async run(harness) {
      const store = await harness.open()
      await store.fail(await own(store, 'now'), retryNow)
      await completed(store, 'now')
      await store.fail(await own(store, 'before', { tombstoneMs }), retryNow)
      const claim = await own(store, 'before')
      await store.complete(claim, answer(), retentionMs)
      await harness.advance(pastRetentionMs)
      const [now, before] = [identity('now'), identity('before')]
      assert.deepEqual([(await recordOf(store, now.id)).gone, (await recordOf(store, now.id)).expired], [true, false])
      const other = await recordOf(store, before.id)
      assert.deepEqual([other.gone, other.expired], [false, true])
    },
  },
  {
    name: 'forgets a gone row at once, audited: the key is new again',
    async run(harness) {
      const store = await harness.open()
      for (const key of ['gone', 'stripped']) {
        const claim = await goneRow(harness, store, key)
        if (key === 'stripped') await store.reap({ limit: 10 })
        assert.deepEqual(await store.forget(claim.id, act), { kind: 'forgotten' })
        assert.equal(await store.read(claim.id), undefined)
        assert.equal((await store.inspect(claim.id)).audit.length, 1)
        assert.equal(won(await store.claim(request(key))).from, 'none')
      }
    },
  },
  {
    name: 'strips and deletes no more rows than it is told to, and the rest the next time',
    async run(harness) {
      const store = await harness.open()
      for (const key of ['a', 'b', 'c']) await completed(store, key)
      for (const key of ['d', 'e']) await completed(store, key, { tombstoneMs: 0 })
      await harness.advance(pastRetentionMs)
      const counts: number[] = []
      for (let turn = 0; turn < 4; turn += 1) counts.push(await store.reap({ limit: 2 }))
      assert.deepEqual(counts, [2, 2, 1, 0])
      assert.equal((await store.list({ limit: 10 })).records.length, 3)
    },
  },
  {
    name: 'refuses every word of the owner of a stripped row',
    async run(harness) {
      const store = await harness.open()
      const claim = await goneRow(harness, store, 'a')
      await store.reap({ limit: 10 })
      assert.equal(await store.fail(claim, retryNow), 'claim-lost')
      assert.equal(await store.park(claim, 'poison'), 'claim-lost')
      assert.equal(await store.release(claim.id, claim.claimId), 'not-yours')
      const stranger = { ...claim, claimId: newClaimId() }
      assert.equal(await store.complete(stranger, answer('late'), retentionMs), 'claim-lost')
      assertGone(await recordOf(store, claim.id), claim)
    },
  },
]

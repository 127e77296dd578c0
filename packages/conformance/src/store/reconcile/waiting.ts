/** Stored evidence that could be applied, the effect of a downstream key, and the number of unknown rows. */
import assert from 'node:assert/strict'
import { needing, type StoreCase } from '../../store-harness.ts'
import { act, answer, assertAbout, expiresInMs, hourMs, identity, leaseMs, minuteMs, newClaimId } from '../fixture.ts'
import { notKnown, own, retentionMs, rowIn } from '../fixture.ts'
import { applying, charged, chargeOf, declined, finding, givenUp, happened, storeEvidence, message } from './fixture.ts'
import { never, unknownAgain, unknownBetweenSteps, unknownCharge, whole, openReconciling } from './fixture.ts'
import { openDoubt, type ReconcilingStore } from './fixture.ts'
import { charge, downstreamKey, ownPhased, withIntent } from '../steps/fixture.ts'

async function waitingIds(store: ReconcilingStore, limit = 100): Promise<readonly string[]> {
  return (await store.reconciliation.waiting({ limit })).map(each => each.evidenceId).toSorted()
}

const phased: readonly StoreCase[] = [
  {
    name: 'finds of evidence about phased work what tells the result of its open effect, in its epoch',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const open = await withIntent(fixture, 'a')
      const early = await storeEvidence(store, chargeOf(open), message('m', 0, charged))
      assert.deepEqual(await waitingIds(store), [])
      await store.fail(open, notKnown)
      assert.deepEqual(await waitingIds(store), [early])
      await storeEvidence(store, chargeOf(open, { epoch: 1 }), finding(charged))
      await storeEvidence(store, chargeOf(open, { position: 1 }), finding(charged))
      await storeEvidence(store, chargeOf(open), finding(happened))
      await storeEvidence(store, whole(open), finding(happened))
      await storeEvidence(store, chargeOf(open), finding(never))
      assert.deepEqual(await waitingIds(store), [early])
      assert.equal((await store.reconciliation.apply(early, applying)).kind, 'settled')
      assert.deepEqual(await waitingIds(store), [])
    },
  },
  {
    name: 'finds of evidence about phased work without an open effect what tells an outcome',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const claim = await unknownBetweenSteps(fixture, 'a')
      await storeEvidence(fixture.store, whole(claim), finding(charged))
      await storeEvidence(fixture.store, chargeOf(claim), finding(charged))
      const evidenceId = await storeEvidence(fixture.store, whole(claim), finding(declined))
      assert.deepEqual(await waitingIds(fixture.store), [evidenceId])
    },
  },
  {
    name: 'finds the effect that was given a downstream key, whatever state its row is in',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store, steps } = fixture
      const { reconciliation } = await openReconciling(harness)
      const find = (key: string) => reconciliation.findEffect(downstreamKey(key))
      assert.equal(await find('a'), undefined)
      const claim = await withIntent(fixture, 'a')
      await withIntent(fixture, 'beside')
      assert.deepEqual(await find('a'), chargeOf(claim))
      await steps.recordResult(claim, { position: 0, value: '1' }, leaseMs)
      assert.deepEqual(await find('a'), chargeOf(claim))
      await steps.openIntent(claim, charge(1, { name: 'refund', key: downstreamKey('refund') }), leaseMs)
      assert.deepEqual(await find('refund'), chargeOf(claim, { position: 1, name: 'refund' }))
      await store.complete(claim, answer(), retentionMs)
      assert.deepEqual(await find('a'), chargeOf(claim))
      assert.equal(await reconciliation.findEffect(newClaimId()), undefined)
    },
  },
  {
    name: 'finds the effect by the key of its newest epoch, and never takes the key of an older one for it',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const { reconciliation } = store
      const claim = await unknownCharge(fixture, 'a')
      await store.settle(claim.id, never, act, retentionMs)
      const between = await reconciliation.findEffect(downstreamKey('a', 0))
      assert.notEqual(between?.effect?.epoch, 1, 'the key was given in epoch 0')
      assert.equal(await reconciliation.findEffect(downstreamKey('a', 1)), undefined)
      await unknownAgain(fixture, 'a', 1)
      assert.deepEqual(await reconciliation.findEffect(downstreamKey('a', 1)), chargeOf(claim, { epoch: 1 }))
      const old = await reconciliation.findEffect(downstreamKey('a', 0))
      assert.notEqual(old?.effect?.epoch, 1, 'the key was given in epoch 0')
    },
  },
  {
    name: 'finds no effect of a row that is gone, and the new one where the key came back',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const find = (key: string) => store.reconciliation.findEffect(downstreamKey(key))
      for (const key of ['expired', 'reaped', 'forgotten']) {
        await store.complete(await withIntent(fixture, key), answer(), retentionMs)
        if (key === 'forgotten') await store.forget(identity(key).id, act)
        else await harness.advance(expiresInMs + hourMs)
        if (key === 'reaped') await store.reap({ limit: 10 })
        if (key !== 'expired') assert.equal(await find(key), undefined, key)
        const next = await ownPhased(store, key)
        assert.equal(await find(key), undefined, key)
        await fixture.steps.openIntent(next, charge(0, { key: downstreamKey(key) }), leaseMs)
        assert.deepEqual(await find(key), chargeOf(next), key)
      }
    },
  },
]

export const waitingCases: readonly StoreCase[] = [
  {
    name: 'finds positive evidence that waits to be applied to an unknown row, and no other',
    async run(harness) {
      const store = await openReconciling(harness)
      const unknown = await rowIn.unknown(harness, store, 'a')
      const done = await rowIn.completed(harness, store, 'completed')
      const failed = await rowIn.failed_retryable(harness, store, 'failed')
      const running = await rowIn.in_progress(harness, store, 'running')
      for (const claim of [done, failed, running]) await storeEvidence(store, whole(claim), finding(happened))
      await storeEvidence(store, whole(unknown), finding(never))
      await storeEvidence(store, whole(unknown), finding(charged))
      await storeEvidence(store, chargeOf(unknown), finding(happened))
      assert.deepEqual(await store.reconciliation.waiting({ limit: 10 }), [])
      const yes = await storeEvidence(store, whole(unknown), finding(happened))
      const no = await storeEvidence(store, whole(unknown), message('m', 0, declined))
      const found = await (await openReconciling(harness)).reconciliation.waiting({ limit: 10 })
      assert.deepEqual(found.map(each => each.evidenceId).toSorted(), [yes, no].toSorted())
      for (const { operation } of found) assert.equal(operation, 'payments.create')
      assert.equal((await store.reconciliation.waiting({ limit: 1 })).length, 1)
      assert.equal((await store.reconciliation.apply(yes, applying)).kind, 'settled')
      assert.deepEqual(await waitingIds(store), [])
    },
  },
  {
    name: 'finds evidence that was kept before its row became unknown, by its owner or by a sweeper',
    async run(harness) {
      const store = await openReconciling(harness)
      const failed = await own(store, 'failed')
      const dead = await own(store, 'dead')
      const early = [
        await storeEvidence(store, whole(failed), message('failed')),
        await storeEvidence(store, whole(dead), message('dead')),
      ]
      assert.deepEqual(await waitingIds(store), [])
      await store.fail(failed, notKnown)
      assert.deepEqual(await waitingIds(store), early.slice(0, 1))
      await harness.advance(leaseMs + minuteMs)
      await store.sweep({ limit: 10 })
      assert.deepEqual(await waitingIds(store), early.toSorted())
      for (const evidenceId of early)
        assert.equal((await store.reconciliation.apply(evidenceId, applying)).kind, 'settled')
      assert.deepEqual(await waitingIds(store), [])
    },
  },
  {
    name: 'finds evidence that waits for a parked row',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await givenUp(store)
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
      assert.deepEqual(await waitingIds(store), [evidenceId])
    },
  },
  {
    name: 'counts unknown rows by operation, those that are parked, and for how long the oldest is',
    async run(harness) {
      const store = await openReconciling(harness)
      assert.deepEqual(await store.reconciliation.unknowns(), [])
      await rowIn.completed(harness, store, 'completed')
      await rowIn.in_progress(harness, store, 'running')
      assert.deepEqual(await store.reconciliation.unknowns(), [])
      await rowIn.unknown(harness, store, 'oldest')
      await givenUp(store)
      await harness.advance(2 * hourMs)
      const next = await rowIn.unknown(harness, store, 'next')
      const other = await own(store, 'other', { identity: identity('other', { operation: 'orders.create' }) })
      await store.fail(other, notKnown)
      await harness.advance(hourMs)
      const found = await (await openReconciling(harness)).reconciliation.unknowns()
      const counts = found.map(({ operation, count, parked }) => [operation, count, parked])
      assert.deepEqual(
        counts.toSorted(([left], [right]) => (String(left) < String(right) ? -1 : 1)),
        [
          ['orders.create', 1, 0],
          ['payments.create', 2, 1],
        ],
      )
      for (const { operation, oldestMs } of found)
        assertAbout(oldestMs, operation === 'orders.create' ? hourMs : 3 * hourMs)
      await store.settle(identity('oldest').id, never, act, retentionMs)
      const [left] = (await store.reconciliation.unknowns()).filter(each => each.operation === 'payments.create')
      assert.deepEqual([left?.count, left?.parked], [1, 0])
      assertAbout(left?.oldestMs ?? 0, hourMs)
      await store.complete(next, answer(), retentionMs)
      await store.complete(other, answer(), retentionMs)
      assert.deepEqual(await store.reconciliation.unknowns(), [])
    },
  },
  ...needing(['steps'], phased),
]

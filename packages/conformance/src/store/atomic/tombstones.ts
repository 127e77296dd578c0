/** Tombstones where business rows, queued work and steps are stored beside the key. */
import assert from 'node:assert/strict'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { open, reserved } from './fixture.ts'
import { answer, atomicRequest, expiresInMs, hourMs, otherFingerprint, own, recordOf } from '../fixture.ts'
import { request, retentionMs, seen, won } from '../fixture.ts'
import { finishEffect, openSteps, ownPhased, work } from '../steps/fixture.ts'
import { assertGone, goneRow, pastRetentionMs, tombstoneMs } from '../keys/tombstone-fixture.ts'

/** Without a reservation, with the fence that the row has: the row itself must refuse. */
async function recordAnyway(harness: StoreHarness, fence: number): Promise<string> {
  const { transactor } = await open(harness)
  let result = 'not tried'
  await transactor.transaction(async tx => {
    await transactor.reserve(tx, atomicRequest('beside it'))
    result = await transactor.record(tx, atomicRequest('a'), answer('thief'), fence)
    return 'rollback'
  })
  return result
}

export const tombstoneBesideCases: readonly StoreCase[] = [
  {
    name: 'queues nothing over a tombstone',
    needs: ['steps'],
    async run(harness) {
      const { store } = await openSteps(harness)
      const claim = await goneRow(harness, store, 'a')
      for (const stripped of [false, true]) {
        if (stripped) await store.reap({ limit: 10 })
        for (const { fingerprint } of [request('a'), { fingerprint: otherFingerprint }]) {
          const { identity: identified, claimId } = request('a')
          const asked = { identity: identified, claimId, fingerprint, expiresInMs, description: undefined, work }
          const queued = await store.enqueue(asked)
          assert.ok(queued.kind === 'seen')
          assertGone(queued.record, claim)
        }
      }
    },
  },
  {
    name: 'reserves nothing over a tombstone',
    needs: ['transactions'],
    async run(harness) {
      const { store, transactor } = await open(harness)
      const claim = await goneRow(harness, store, 'a')
      for (const stripped of [false, true]) {
        if (stripped) await store.reap({ limit: 10 })
        for (const { fingerprint } of [request('a'), { fingerprint: otherFingerprint }]) {
          const found = await reserved(transactor, atomicRequest('a', { fingerprint }))
          assert.ok(found.kind === 'seen')
          assertGone(found.record, claim)
          assert.equal(await recordAnyway(harness, claim.fence), 'taken')
        }
      }
      await harness.advance(tombstoneMs)
      const found = await reserved(transactor)
      assert.deepEqual(found, { kind: 'free', fence: claim.fence, from: 'expired' })
    },
  },
  {
    name: 'keeps a tombstone of an atomic operation that asks for one',
    needs: ['transactions'],
    async run(harness) {
      const { store, transactor } = await open(harness)
      const asked = atomicRequest('a', { tombstoneMs })
      await transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        assert.equal(await transactor.record(tx, asked, answer(), 0), 'recorded')
        return 'commit'
      })
      const { fence } = await recordOf(store, asked.identity.id)
      await harness.advance(retentionMs + hourMs)
      assertGone(seen(await store.claim(request('a'))), { id: asked.identity.id, fence, claimId: asked.claimId })
      await harness.advance(tombstoneMs)
      assert.equal(won(await store.claim(request('a'))).from, 'expired')
    },
  },
  {
    name: 'keeps a tombstone of queued work that asks for one',
    needs: ['steps'],
    async run(harness) {
      const { store } = await openSteps(harness)
      const { identity: identified, claimId, fingerprint, description } = request('a')
      await store.enqueue({ identity: identified, claimId, fingerprint, expiresInMs, description, work, tombstoneMs })
      assert.equal((await recordOf(store, identified.id)).gone, false)
      const claim = await own(store, 'a', { recovery: 'resume', tombstoneMs })
      await store.complete(claim, answer(), retentionMs)
      await harness.advance(pastRetentionMs)
      assertGone(seen(await store.claim(request('a'))), claim)
    },
  },
  {
    name: 'strips a tombstone of its input and its steps',
    needs: ['steps'],
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store, steps } = fixture
      const claim = await ownPhased(store, 'a', { tombstoneMs })
      await finishEffect(fixture, claim)
      await store.complete(claim, answer(), retentionMs)
      await harness.advance(pastRetentionMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
      assert.equal(await steps.readJournal(claim.id), undefined)
      assertGone(await recordOf(store, claim.id), claim)
      await harness.advance(tombstoneMs)
      const next = won(await store.claim(request('a', { recovery: 'resume', work })))
      assert.deepEqual([next.from, next.journal?.steps], ['expired', []])
    },
  },
]

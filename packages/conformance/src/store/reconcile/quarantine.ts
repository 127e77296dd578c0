/** A "never happened" proves nothing while the request may still be on its way. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { assertNextFence, assertState, hourMs, leaseMs, notKnown, own, recordOf, rowIn } from '../fixture.ts'
import {
  applying,
  evidenceOf,
  finding,
  happened,
  storeEvidence,
  message,
  never,
  quarantineMs,
  presentEvidence,
} from './fixture.ts'
import { whole, openReconciling } from './fixture.ts'

export const quarantineCases: readonly StoreCase[] = [
  {
    name: 'refuses a "never happened" inside the quarantine, says what is left of it, and never counts it later',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(hourMs)
      const early = await storeEvidence(store, whole(claim), finding(never))
      const refused = await store.reconciliation.apply(early, applying)
      assert.equal(refused.kind, 'too-early')
      assert.ok(refused.leftMs > hourMs && refused.leftMs <= quarantineMs - hourMs, `left: ${refused.leftMs}`)
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.fence], ['unknown', claim.fence])
      await harness.advance(quarantineMs)
      assert.deepEqual(await store.reconciliation.apply(early, applying), { kind: 'too-early', leftMs: 0 })
      await assertState(store, claim.id, 'unknown')
      assert.equal(await presentEvidence(store, whole(claim), never), 'settled')
      assert.deepEqual(await evidenceOf(store, claim.id), ['ledger: never-happened', 'ledger: never-happened, applied'])
    },
  },
  {
    name: 'counts no "never happened" that was found inside the quarantine or before it, though applied after it',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await own(store, 'a', { leaseMs: 3 * leaseMs })
      const before = await storeEvidence(store, whole(claim), finding(never))
      await harness.advance(leaseMs)
      await store.fail(claim, notKnown)
      const inside = await storeEvidence(store, whole(claim), message('m', 0, never))
      await harness.advance(quarantineMs + hourMs)
      assert.equal((await store.reconciliation.keep(whole(claim), message('m', hourMs, never))).kind, 'duplicate')
      for (const evidenceId of [before, inside])
        assert.equal((await store.reconciliation.apply(evidenceId, applying)).kind, 'too-early')
      await assertState(store, claim.id, 'unknown')
    },
  },
  {
    name: 'counts the quarantine from when the row became unknown, whether its owner or a sweeper said so',
    async run(harness) {
      const store = await openReconciling(harness)
      const failed = await own(store, 'failed', { leaseMs: 9 * hourMs })
      const dead = await own(store, 'dead', { leaseMs: hourMs })
      await harness.advance(5 * hourMs)
      await store.fail(failed, notKnown)
      await store.sweep({ limit: 10 })
      await harness.advance(quarantineMs - hourMs)
      assert.equal(await presentEvidence(store, whole(failed), never), 'too-early')
      assert.equal(await presentEvidence(store, whole(dead), never), 'too-early')
      await harness.advance(2 * hourMs)
      assert.equal(await presentEvidence(store, whole(failed), never), 'settled')
      assert.equal(await presentEvidence(store, whole(dead), never), 'settled')
    },
  },
  {
    name: 'begins no quarantine anew when the owner says again that it does not know',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(quarantineMs - hourMs)
      await store.fail(claim, notKnown)
      await harness.advance(2 * hourMs)
      assert.equal(await presentEvidence(store, whole(claim), never), 'settled')
    },
  },
  {
    name: 'begins the quarantine anew when the row becomes unknown again',
    async run(harness) {
      const store = await openReconciling(harness)
      const first = await rowIn.unknown(harness, store, 'a')
      await harness.advance(quarantineMs + hourMs)
      assert.equal(await presentEvidence(store, whole(first), never), 'settled')
      const second = await rowIn.unknown(harness, store, 'a')
      assertNextFence(store, first.fence, second.fence)
      assert.equal(await presentEvidence(store, whole(second), never), 'too-early')
      await assertState(store, second.id, 'unknown')
    },
  },
  {
    name: 'counts what happened at once: the quarantine is for what did not',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      assert.equal(await presentEvidence(store, whole(claim), happened), 'settled')
    },
  },
]

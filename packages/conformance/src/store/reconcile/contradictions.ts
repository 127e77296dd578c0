/** Evidence, late owners and operators at the same time: one of them settles the row. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, hourMs, plain, retentionMs, rowIn } from '../fixture.ts'
import { applying, finding, happened, storeEvidence, never, quarantineMs, whole, openReconciling } from './fixture.ts'

export const contradictionCases: readonly StoreCase[] = [
  {
    name: 'settles once when pieces of evidence contradict each other at the same moment',
    async run(harness) {
      const store = await openReconciling(harness)
      const second = await openReconciling(harness)
      for (let round = 0; round < 6; round += 1) {
        const claim = await rowIn.unknown(harness, store, `round ${round}`)
        await harness.advance(quarantineMs + hourMs)
        const yes = await storeEvidence(store, whole(claim), finding(happened))
        const no = await storeEvidence(store, whole(claim), finding(never))
        const results = await Promise.all([
          store.reconciliation.apply(yes, applying),
          second.reconciliation.apply(no, applying),
        ])
        assert.deepEqual(results.map(result => result.kind).toSorted(), ['not-applicable', 'settled'])
        const { record, evidence } = await store.inspect(claim.id)
        const [counted, ...others] = evidence.filter(entry => entry.applied)
        assert.deepEqual(others, [])
        assert.equal(record?.state, counted?.verdict === 'happened' ? 'completed' : 'failed_retryable')
        assert.equal(record?.fence, claim.fence)
      }
    },
  },
  {
    name: 'settles once when one piece of evidence is applied many times at once',
    async run(harness) {
      const stores = [await openReconciling(harness), await openReconciling(harness)]
      const [store] = stores
      assert.ok(store)
      const claim = await rowIn.unknown(harness, store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
      const asked = Array.from({ length: 5 }, () => stores.map(each => each.reconciliation.apply(evidenceId, applying)))
      const results = await Promise.all(asked.flat())
      assert.equal(results.filter(result => result.kind === 'settled').length, 1)
      assert.equal(results.filter(result => result.kind === 'applied-before').length, 9)
    },
  },
  {
    name: "takes the evidence or the late owner's answer, whichever comes first, never both",
    async run(harness) {
      const store = await openReconciling(harness)
      const second = await openReconciling(harness)
      for (let round = 0; round < 6; round += 1) {
        const claim = await rowIn.unknown(harness, store, `round ${round}`)
        const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
        const [applied, completed] = await Promise.all([
          second.reconciliation.apply(evidenceId, applying),
          store.complete(claim, answer('late'), retentionMs),
        ])
        assert.notEqual(applied.kind === 'settled', completed === 'written')
        const { record, evidence } = await store.inspect(claim.id)
        const expected = completed === 'written' ? answer('late') : happened.outcome
        assert.deepEqual(record?.outcome && plain(record.outcome), plain(expected))
        assert.equal(evidence.filter(entry => entry.applied).length, 1)
      }
    },
  },
  {
    name: "takes the evidence or a person's verdict, whichever comes first, never both",
    async run(harness) {
      const store = await openReconciling(harness)
      const second = await openReconciling(harness)
      for (let round = 0; round < 6; round += 1) {
        const claim = await rowIn.unknown(harness, store, `round ${round}`)
        const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
        const [applied, settled] = await Promise.all([
          second.reconciliation.apply(evidenceId, applying),
          store.settle(claim.id, never, act, retentionMs),
        ])
        assert.notEqual(applied.kind === 'settled', settled.kind === 'settled')
        const { record, evidence, audit } = await store.inspect(claim.id)
        assert.equal(record?.state, applied.kind === 'settled' ? 'completed' : 'failed_retryable')
        assert.equal(evidence.filter(entry => entry.applied).length, 1)
        assert.equal(audit.length, settled.kind === 'settled' ? 1 : 0)
      }
    },
  },
]

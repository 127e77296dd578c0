/** Evidence is stored, whatever the state of its row; received messages outlive the row. */
import assert from 'node:assert/strict'
import type { Claim } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { assertAbout, expiresInMs, hourMs, identity, minuteMs, newClaimId, own, recordOf, rowIn } from '../fixture.ts'
import { still } from '../fixture.ts'
import { declined, evidenceOf, finding, givenUp, happened, storeEvidence, message, never, whole } from './fixture.ts'
import { openReconciling, type ReconcilingStore } from './fixture.ts'

type MakeRow = (harness: StoreHarness, store: ReconcilingStore, key: string) => Promise<Pick<Claim, 'id'>>

const rows: Record<string, MakeRow> = {
  in_progress: rowIn.in_progress,
  'in_progress past its lease': rowIn['in_progress past its lease (hold)'],
  completed: rowIn.completed,
  failed_retryable: rowIn.failed_retryable,
  unknown: rowIn.unknown,
  parked: async (_harness, store, key) => {
    const claim = await own(store, key)
    await store.park(claim, 'poison')
    return claim
  },
  'unknown and parked': async (harness, store, key) => {
    await rowIn.unknown(harness, store, key)
    return givenUp(store)
  },
}

export const evidenceCases: readonly StoreCase[] = [
  ...Object.entries(rows).map(([state, makeRow]): StoreCase => ({
    name: `keeps evidence about a row that is ${state}, and changes nothing of the row`,
    async run(harness) {
      const store = await openReconciling(harness)
      const row = await makeRow(harness, store, state)
      const before = still(await recordOf(store, row.id))
      await storeEvidence(store, whole(row), finding(happened))
      await storeEvidence(await openReconciling(harness), whole(row), finding(never))
      assert.deepEqual(still(await recordOf(store, row.id)), before)
      assert.deepEqual(await evidenceOf(store, row.id), ['ledger: happened', 'ledger: never-happened'])
    },
  })),
  {
    name: 'keeps no evidence where there is no row',
    async run(harness) {
      const store = await openReconciling(harness)
      const { id } = identity('nobody')
      assert.deepEqual(await store.reconciliation.keep(whole({ id }), finding(happened)), { kind: 'no-row' })
      assert.deepEqual(await store.reconciliation.keep(whole({ id }), message('m')), { kind: 'no-row' })
      assert.deepEqual(await store.inspect(id), { record: undefined, evidence: [], audit: [] })
    },
  },
  {
    name: 'tells of each piece of evidence who said what, about what, when, and that it moved nothing',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.in_progress(harness, store, 'a')
      await storeEvidence(store, whole(claim), finding(declined, { source: 'look-up' }))
      const { evidence, audit } = await store.inspect(claim.id)
      const [first] = evidence
      assert.ok(first)
      const { atMs, ...said } = first
      assert.deepEqual(said, { source: 'look-up', verdict: 'declined', effect: undefined, applied: false })
      assertAbout(atMs, (await recordOf(store, claim.id)).createdAtMs)
      assert.deepEqual([evidence.length, audit], [1, []])
    },
  },
  {
    name: 'keeps what a source says twice under one name once, as it was said first',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = await openReconciling(harness)
      const claim = await rowIn.in_progress(harness, store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened, { ref: 'r' }))
      for (const verdict of [happened, never]) {
        const again = await reconciliation.keep(whole(claim), finding(verdict, { ref: 'r' }))
        assert.deepEqual(again, { kind: 'duplicate', evidenceId })
      }
      const other = await storeEvidence(store, whole(claim), finding(happened, { ref: 'r', source: 'look-up' }))
      assert.notEqual(other, evidenceId)
      assert.deepEqual(await evidenceOf(store, claim.id), ['ledger: happened', 'look-up: happened'])
    },
  },
  {
    name: 'keeps one piece of evidence that is told ten times at once',
    async run(harness) {
      const stores = [await openReconciling(harness), await openReconciling(harness)]
      const [store] = stores
      assert.ok(store)
      const claim = await rowIn.unknown(harness, store, 'a')
      const asked = Array.from({ length: 5 }, () =>
        stores.map(each => each.reconciliation.keep(whole(claim), finding(happened, { ref: 'r' }))),
      )
      const results = await Promise.all(asked.flat())
      assert.equal(results.filter(result => result.kind === 'kept').length, 1)
      assert.equal(results.filter(result => result.kind === 'duplicate').length, 9)
      assert.equal(new Set(results.map(result => 'evidenceId' in result && result.evidenceId)).size, 1)
      assert.deepEqual(await evidenceOf(store, claim.id), ['ledger: happened'])
    },
  },
  {
    name: 'keeps a ref of two hundred characters whole',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.unknown(harness, store, 'a')
      const long = '\u00e9'.repeat(199)
      const first = await storeEvidence(store, whole(claim), finding(happened, { ref: `${long}1` }))
      const second = await storeEvidence(store, whole(claim), finding(happened, { ref: `${long}2` }))
      assert.notEqual(first, second)
    },
  },
  {
    name: 'refuses a delivery that is not signed later than the one it knows',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = await openReconciling(harness)
      const claim = await rowIn.in_progress(harness, store, 'a')
      await storeEvidence(store, whole(claim), message('m'))
      for (const laterMs of [0, -1, -hourMs])
        assert.deepEqual(await reconciliation.keep(whole(claim), message('m', laterMs)), { kind: 'replayed' })
      assert.deepEqual(await evidenceOf(store, claim.id), ['webhook: happened'])
    },
  },
  {
    name: 'takes a delivery that is signed later for the same message, and refuses what was recorded of either',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const claim = await rowIn.in_progress(harness, store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), message('m'))
      await harness.advance(hourMs)
      assert.deepEqual(await reconciliation.keep(whole(claim), message('m', hourMs)), { kind: 'duplicate', evidenceId })
      for (const laterMs of [hourMs, minuteMs, 0])
        assert.deepEqual(await reconciliation.keep(whole(claim), message('m', laterMs)), { kind: 'replayed' })
      assert.deepEqual(await reconciliation.keep(whole(claim), message('m', hourMs + 1)), {
        kind: 'duplicate',
        evidenceId,
      })
      assert.deepEqual(await evidenceOf(store, claim.id), ['webhook: happened'])
    },
  },
  {
    name: 'takes one of many equal deliveries that arrive at once',
    async run(harness) {
      const stores = [await openReconciling(harness), await openReconciling(harness)]
      const [store] = stores
      assert.ok(store)
      const claim = await rowIn.unknown(harness, store, 'a')
      const asked = Array.from({ length: 5 }, () =>
        stores.map(each => each.reconciliation.keep(whole(claim), message('m'))),
      )
      const results = await Promise.all(asked.flat())
      assert.equal(results.filter(result => result.kind === 'kept').length, 1)
      assert.equal(results.filter(result => result.kind === 'replayed').length, 9)
    },
  },
  {
    name: 'remembers a message that belonged to no row: a row that begins later is not what it is about',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const subject = whole(identity('a'))
      assert.deepEqual(await reconciliation.keep(subject, message('m')), { kind: 'no-row' })
      assert.deepEqual(await reconciliation.keep(subject, message('m')), { kind: 'replayed' })
      await harness.advance(hourMs)
      await rowIn.unknown(harness, store, 'a')
      assert.deepEqual(await reconciliation.keep(subject, message('m')), { kind: 'replayed' })
      assert.deepEqual(await reconciliation.keep(subject, message('m', hourMs)), { kind: 'no-row' })
      assert.deepEqual(await evidenceOf(store, subject.id), [])
      await storeEvidence(store, subject, message('another'))
    },
  },
  {
    name: 'remembers a message of a reaped row: it is no evidence about the next life of the key',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.completed(harness, store, 'a')
      await storeEvidence(store, whole(claim), message('m'))
      await harness.advance(expiresInMs + hourMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
      await rowIn.unknown(harness, store, 'a')
      assert.deepEqual(await store.reconciliation.keep(whole(claim), message('m', hourMs)), { kind: 'no-row' })
      assert.deepEqual(await evidenceOf(store, claim.id), [])
    },
  },
  {
    name: 'deletes the evidence of a reaped row',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn.completed(harness, store, 'a')
      const evidenceId = await storeEvidence(store, whole(claim), finding(happened))
      await harness.advance(expiresInMs + hourMs)
      await store.reap({ limit: 10 })
      assert.deepEqual(await evidenceOf(store, claim.id), [])
      const applied = await store.reconciliation.apply(evidenceId, { quarantineMs: 0, retentionMs: hourMs })
      assert.deepEqual(applied, { kind: 'not-applicable', state: undefined })
    },
  },
  {
    name: 'forgets messages that were received longer ago than it is told, no more of them than asked, and says how many',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const subject = whole({ id: newClaimId() })
      for (const ref of ['a', 'b', 'c']) await reconciliation.keep(subject, message(ref))
      await harness.advance(3 * hourMs)
      await reconciliation.keep(subject, message('young'))
      const forget = (limit: number) => reconciliation.forgetDeliveries({ olderThanMs: 2 * hourMs, limit })
      assert.deepEqual([await forget(2), await forget(2), await forget(2)], [2, 1, 0])
      assert.deepEqual(await reconciliation.keep(subject, message('young')), { kind: 'replayed' })
      for (const ref of ['a', 'b', 'c'])
        assert.deepEqual(await reconciliation.keep(subject, message(ref)), { kind: 'no-row' }, ref)
    },
  },
]

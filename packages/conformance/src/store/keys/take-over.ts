/** Rows that change owner: only those that the claim names, so that its caller can be authorised first. */
import assert from 'node:assert/strict'
import type { GrantedFrom, Store, TakeOver } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { open } from '../atomic/fixture.ts'
import {
  answer,
  assertNextFence,
  atomicRequest,
  expiresInMs,
  hourMs,
  leaseMs,
  minuteMs,
  newClaimId,
} from '../fixture.ts'
import { own, recordOf, request, rowIn, seen, still, won } from '../fixture.ts'
import { openSteps, ownPhased, phasedRequest, withIntent, work } from '../steps/fixture.ts'

/** The states from which a row of another caller may be granted. */
const others: readonly (readonly ['failed_retryable' | 'in_progress past its lease (rerun)', GrantedFrom])[] = [
  ['failed_retryable', 'failed_retryable'],
  ['in_progress past its lease (rerun)', 'dead-lease'],
]

/** Each differs from the current grant in one respect. */
function strangers({ fence, claimId }: { fence: number; claimId: string }): readonly TakeOver[] {
  return ['none', { fence: fence + 1, claimId }, { fence: fence - 1, claimId }, { fence, claimId: newClaimId() }]
}

async function assertUntouched(store: Store, id: string, before: object): Promise<void> {
  assert.deepEqual(still(await recordOf(store, id)), before)
}

const guardedCases: readonly StoreCase[] = [
  ...others.map(([state, from]): StoreCase => ({
    name: `lets a row that is ${state} change hands only to a claim that names its grant`,
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn[state](harness, store, 'a')
      const before = still(await recordOf(store, claim.id))
      for (const takeOver of strangers(claim)) {
        const record = seen(await store.claim(request('a', { recovery: 'rerun', takeOver })))
        assert.deepEqual(still(record), before, 'what was not granted is seen as it is')
        await assertUntouched(store, claim.id, before)
      }
      const { fence, claimId } = claim
      const next = won(await store.claim(request('a', { recovery: 'rerun', takeOver: { fence, claimId } })))
      assert.equal(next.from, from)
      assertNextFence(store, fence, next.claim.fence)
    },
  })),
  {
    name: 'grants what is nobody’s to a claim that may take nothing over: a new key, and an expired row',
    async run(harness) {
      const store = await harness.open()
      assert.equal(won(await store.claim(request('a', { takeOver: 'none' }))).from, 'none')
      const claim = await own(store, 'b')
      assert.equal(await store.complete(claim, answer(), hourMs), 'written')
      await harness.advance(expiresInMs + hourMs)
      const next = won(await store.claim(request('b', { takeOver: 'none' })))
      assert.equal(next.from, 'expired')
      assertNextFence(store, claim.fence, next.claim.fence)
    },
  },
  {
    name: 'grants a row once, of two claims that name the same grant, and shows the other one whose it is now',
    async run(harness) {
      const store = await harness.open()
      const { fence, claimId } = await rowIn.failed_retryable(harness, store, 'a')
      const takeOver = { fence, claimId }
      const results = await Promise.all([1, 2].map(() => store.claim(request('a', { takeOver }))))
      const winners = results.flatMap(result => (result.kind === 'won' ? [result.claim] : []))
      const losers = results.flatMap(result => (result.kind === 'seen' ? [result.record] : []))
      assert.deepEqual([winners.length, losers.length], [1, 1])
      assert.deepEqual([losers[0]?.fence, losers[0]?.claimId], [winners[0]?.fence, winners[0]?.claimId])
    },
  },
]

/** `pending`: queued for a worker. */
const phasedRows: Record<string, (harness: StoreHarness, store: Store) => Promise<GrantedFrom>> = {
  'phased work with a dead lease': async (harness, store) => {
    await ownPhased(store, 'a')
    await harness.advance(leaseMs + minuteMs)
    return 'dead-lease'
  },
  'work that waits for a worker': async (_harness, store) => {
    const { recovery: _recovery, leaseMs: _lease, ...later } = request('a')
    assert.equal((await store.enqueue({ ...later, work: { ...work, deadlineInMs: hourMs } })).kind, 'queued')
    return 'pending'
  },
}

const facultyCases: readonly StoreCase[] = [
  ...Object.entries(phasedRows).map(([what, prepare]): StoreCase => ({
    name: `lets ${what} change hands only to a claim that names its grant, with its own input`,
    needs: ['steps'],
    async run(harness) {
      const { store } = await openSteps(harness)
      const from = await prepare(harness, store)
      const { id, fence, claimId, ...row } = await recordOf(store, request('a').identity.id)
      const before = still({ id, fence, claimId, ...row })
      for (const takeOver of strangers({ fence, claimId })) {
        seen(await store.claim(phasedRequest('a', { takeOver })))
        await assertUntouched(store, id, before)
      }
      const other = { version: 1, input: '"of the caller who came second"' }
      const next = won(await store.claim(phasedRequest('a', { takeOver: { fence, claimId }, work: other })))
      assert.deepEqual([next.from, next.journal?.work?.input], [from, work.input])
    },
  })),
  {
    name: 'grants no row with an intent that may not be repeated, also where the claim names it',
    needs: ['steps'],
    async run(harness) {
      const fixture = await openSteps(harness)
      const { fence, claimId } = await withIntent(fixture, 'a')
      await harness.advance(leaseMs + minuteMs)
      seen(await fixture.store.claim(phasedRequest('a', { takeOver: { fence, claimId } })))
    },
  },
  ...others.map(([state, from]): StoreCase => ({
    name: `reserves a row that is ${state} only for a request that names its grant`,
    needs: ['transactions'],
    async run(harness) {
      const { store, transactor } = await open(harness)
      const claim = await rowIn[state](harness, store, 'a')
      const before = still(await recordOf(store, claim.id))
      const { fence, claimId } = claim
      const reserve = async (takeOver: TakeOver) => {
        let kind = ''
        await transactor.transaction(async tx => {
          const asked = atomicRequest('a', { takeOver })
          const reservation = await transactor.reserve(tx, asked)
          kind = reservation.kind === 'free' ? `free from ${reservation.from}` : reservation.kind
          if (reservation.kind !== 'free') return 'rollback'
          assert.equal(await transactor.record(tx, asked, answer(), reservation.fence), 'recorded')
          return 'commit'
        })
        return kind
      }
      for (const takeOver of strangers(claim)) {
        assert.equal(await reserve(takeOver), 'seen')
        await assertUntouched(store, claim.id, before)
      }
      assert.equal(await reserve({ fence, claimId }), `free from ${from}`)
      assert.equal((await recordOf(store, claim.id)).state, 'completed')
    },
  })),
]

export const takeOverCases: readonly StoreCase[] = [...guardedCases, ...facultyCases]

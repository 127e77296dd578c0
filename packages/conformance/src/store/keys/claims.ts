/** Which claims are granted, and which only see the row. */
import assert from 'node:assert/strict'
import type { ClaimRequest, Store } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { answer, assertAbout, assertNextFence, bytes, expiresInMs, hourMs, identity, leaseMs } from '../fixture.ts'
import { minuteMs, newClaimId, otherFingerprint, own, recordOf, request, retentionMs, retryNow } from '../fixture.ts'
import { rowIn, seen, still, won } from '../fixture.ts'

/** Fifty claims at once over four handles, like four processes; returns the winners. */
async function fifty(harness: StoreHarness, key: string, over: Partial<ClaimRequest> = {}) {
  const stores: Store[] = []
  for (let handle = 0; handle < 4; handle += 1) stores.push(await harness.open())
  const claimants = Array.from({ length: 13 }, () => stores)
    .flat()
    .slice(0, 50)
  const results = await Promise.all(claimants.map(store => store.claim(request(key, over))))
  return results.filter(result => result.kind === 'won')
}

async function assertRefused(store: Store, asked: ClaimRequest): Promise<void> {
  const before = await recordOf(store, asked.identity.id)
  const record = seen(await store.claim(asked))
  assert.deepEqual(still(record), still(before))
  assert.deepEqual(still(await recordOf(store, asked.identity.id)), still(before), 'a refused claim changed the row')
}

export const claimCases: readonly StoreCase[] = [
  {
    name: 'grants a free identity and writes what was asked',
    async run(harness) {
      const store = await harness.open()
      const asked = request('a', { recovery: 'rerun', description: 'order 7' })
      const { claim, attempt, from } = won(await store.claim(asked))
      assert.deepEqual([attempt, from, claim.id, claim.claimId], [1, 'none', asked.identity.id, asked.claimId])
      assertNextFence(store, 0, claim.fence)
      const record = await recordOf(store, claim.id)
      assert.equal(record.state, 'in_progress')
      assert.equal(record.recovery, 'rerun')
      assert.equal(record.scope, 'tenant-1')
      assert.equal(record.operation, 'payments.create')
      assert.equal(record.fence, claim.fence)
      assert.equal(record.claimId, asked.claimId)
      assert.equal(record.description, 'order 7')
      assert.deepEqual([record.attempts, record.crashes, record.parked, record.expired], [1, 0, false, false])
      assert.deepEqual([record.outcome, record.completedAtMs, record.lastErrorCode], [undefined, undefined, undefined])
      assertAbout(record.leaseLeftMs, leaseMs)
      assertAbout(record.expiresAtMs - record.createdAtMs, expiresInMs)
    },
  },
  {
    name: 'reads nothing where nothing was claimed',
    async run(harness) {
      const store = await harness.open()
      assert.equal(await store.read(identity('nobody').id), undefined)
    },
  },
  {
    name: 'grants fifty simultaneous claims of a free identity to one owner',
    async run(harness) {
      const winners = await fifty(harness, 'a')
      assert.equal(winners.length, 1)
      const record = await recordOf(await harness.open(), identity('a').id)
      assert.equal(record.claimId, winners[0]?.claim.claimId)
      assert.equal(record.attempts, 1)
    },
  },
  {
    name: 'grants fifty simultaneous claims over an expired completed row to one owner',
    async run(harness) {
      const store = await harness.open()
      const old = await rowIn.completed(harness, store, 'a')
      await harness.advance(expiresInMs + hourMs)
      const winners = await fifty(harness, 'a')
      assert.deepEqual(
        winners.map(winner => winner.from),
        ['expired'],
      )
      assertNextFence(store, old.fence, winners[0]?.claim.fence ?? 0)
    },
  },
  {
    name: 'grants fifty simultaneous claims over a dead lease to one owner when the row may be rerun',
    async run(harness) {
      const store = await harness.open()
      const old = await rowIn['in_progress past its lease (rerun)'](harness, store, 'a')
      const winners = await fifty(harness, 'a')
      assert.deepEqual(
        winners.map(winner => winner.from),
        ['dead-lease'],
      )
      assertNextFence(store, old.fence, winners[0]?.claim.fence ?? 0)
    },
  },
  {
    name: 'grants a held row to none of fifty after its lease, and sweeps it to unknown',
    async run(harness) {
      const store = await harness.open()
      const old = await rowIn['in_progress past its lease (hold)'](harness, store, 'a')
      // The row's recovery decides, not that of the new request.
      assert.equal((await fifty(harness, 'a', { recovery: 'rerun' })).length, 0)
      await store.sweep({ limit: 10, id: old.id })
      const record = await recordOf(store, old.id)
      assert.deepEqual([record.state, record.fence, record.claimId], ['unknown', old.fence, old.claimId])
      assert.equal((await fifty(harness, 'a', { recovery: 'rerun' })).length, 0)
    },
  },
  {
    name: 'grants one of fifty while a sweeper works on the same dead lease',
    async run(harness) {
      const store = await harness.open()
      await rowIn['in_progress past its lease (rerun)'](harness, store, 'a')
      const [winners] = await Promise.all([fifty(harness, 'a'), store.sweep({ limit: 10 }), store.sweep({ limit: 10 })])
      // A claim before the sweep takes the lease over, one after it retries: exactly one is granted.
      assert.equal(winners.length, 1)
      const record = await recordOf(store, identity('a').id)
      assert.deepEqual([record.state, record.attempts, record.crashes], ['in_progress', 2, 1])
    },
  },
  {
    name: 'shows a claim repeated by its owner its own row, and does not grant twice',
    async run(harness) {
      const store = await harness.open()
      const asked = request('a')
      const { claim } = won(await store.claim(asked))
      const record = seen(await store.claim(asked))
      assert.deepEqual([record.state, record.claimId, record.fence], ['in_progress', asked.claimId, claim.fence])
      assertAbout(record.leaseLeftMs, leaseMs)
    },
  },
  {
    name: 'leaves a running, held, completed or unknown row untouched and shows it',
    async run(harness) {
      const store = await harness.open()
      const held = 'in_progress past its lease (hold)'
      for (const state of ['in_progress', held, 'completed', 'unknown'] as const) {
        await rowIn[state](harness, store, state)
        await assertRefused(store, request(state, { recovery: 'rerun', description: 'changed', leaseMs: 5 * hourMs }))
      }
    },
  },
  {
    name: 'shows the stored outcome of a completed row to a claim',
    async run(harness) {
      const store = await harness.open()
      await rowIn.completed(harness, store, 'a')
      const record = seen(await store.claim(request('a')))
      assert.equal(record.state, 'completed')
      assert.equal(record.outcome?.status, 201)
    },
  },
  {
    name: 'never grants another fingerprint, in no state',
    async run(harness) {
      const store = await harness.open()
      const states = Object.entries(rowIn).filter(([state]) => state !== 'absent')
      for (const [state, reach] of states) {
        await reach(harness, store, state)
        await assertRefused(store, request(state, { fingerprint: otherFingerprint, recovery: 'rerun' }))
      }
    },
  },
  {
    name: 'tells fingerprints apart by every byte and by their length',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { fingerprint: bytes('v1 abc') })
      await store.fail(claim, retryNow)
      for (const other of ['v1 abd', 'v1 ab', 'v1 abc ', 'V1 abc', 'v1 abc\0', '']) {
        seen(await store.claim(request('a', { fingerprint: bytes(other) })))
      }
      won(await store.claim(request('a', { fingerprint: bytes('v1 abc') })))
    },
  },
  {
    name: 'grants a failed row again when it is due, with the next fence and attempt',
    async run(harness) {
      const store = await harness.open()
      const first = await own(store, 'a')
      await store.fail(first, { ...retryNow, dueInMs: leaseMs })
      const early = seen(await store.claim(request('a')))
      assert.equal(early.state, 'failed_retryable')
      assertAbout(early.dueInMs, leaseMs)
      await harness.advance(leaseMs + minuteMs)
      assert.ok((await recordOf(store, first.id)).dueInMs <= 0)
      const again = won(await store.claim(request('a', { recovery: 'rerun' })))
      assert.deepEqual([again.from, again.attempt], ['failed_retryable', 2])
      assertNextFence(store, first.fence, again.claim.fence)
      const record = await recordOf(store, first.id)
      assert.deepEqual([record.state, record.attempts, record.crashes], ['in_progress', 2, 0])
      assert.equal(record.recovery, 'rerun')
      assertAbout(record.leaseLeftMs, leaseMs)
    },
  },
  {
    name: 'grants a failed row that is due to one of fifty',
    async run(harness) {
      const store = await harness.open()
      await rowIn.failed_retryable(harness, store, 'a')
      const winners = await fifty(harness, 'a')
      assert.deepEqual(
        winners.map(winner => [winner.from, winner.attempt]),
        [['failed_retryable', 2]],
      )
    },
  },
  {
    name: 'finds its own grant by claimId after a lost reply, and releases it',
    async run(harness) {
      const store = await harness.open()
      const asked = request('a')
      await store.claim(asked)
      const record = await recordOf(store, asked.identity.id)
      assert.deepEqual([record.state, record.claimId], ['in_progress', asked.claimId])
      assert.equal(await store.release(asked.identity.id, newClaimId()), 'not-yours')
      assert.equal(await store.release(asked.identity.id, asked.claimId), 'released')
      const again = won(await store.claim(request('a')))
      assert.equal(again.from, 'failed_retryable')
      assertNextFence(store, record.fence, again.claim.fence)
      assert.equal(await store.release(asked.identity.id, asked.claimId), 'not-yours')
      assert.equal((await recordOf(store, asked.identity.id)).state, 'in_progress')
    },
  },
  {
    name: 'keeps identities apart: one row changes, its neighbour does not',
    async run(harness) {
      const store = await harness.open()
      const mine = await own(store, 'a')
      const other = await own(store, 'b')
      assert.equal(await store.complete({ ...mine, id: other.id }, answer(), retentionMs), 'claim-lost')
      assert.equal(await store.complete(mine, answer(), retentionMs), 'written')
      assert.equal((await recordOf(store, other.id)).state, 'in_progress')
    },
  },
  {
    name: 'reads without writing',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn['in_progress past its lease (rerun)'](harness, store, 'a')
      const before = await recordOf(store, claim.id)
      await store.read(claim.id)
      await store.inspect(claim.id)
      await store.list({ limit: 10 })
      assert.deepEqual(still(await recordOf(store, claim.id)), still(before))
    },
  },
]

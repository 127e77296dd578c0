/** Leases: how they are renewed, and what happens to a row whose owner is silent. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { answer, assertAbout, assertNextFence, assertState, identity, leaseMs, minuteMs, notKnown } from '../fixture.ts'
import { own, plain, recordOf, request, retentionMs, retryNow, rowIn, seen, still, won } from '../fixture.ts'

export const leaseCases: readonly StoreCase[] = [
  {
    name: 'keeps a lease alive by heartbeats, without raising the fence',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { recovery: 'rerun' })
      for (let beat = 0; beat < 3; beat += 1) {
        await harness.advance(leaseMs - minuteMs)
        assert.equal(await store.heartbeat(claim, leaseMs), 'written')
      }
      const record = seen(await store.claim(request('a', { recovery: 'rerun' })))
      assert.deepEqual([record.state, record.fence, record.attempts], ['in_progress', claim.fence, 1])
      assertAbout(record.leaseLeftMs, leaseMs)
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
    },
  },
  {
    name: 'takes a heartbeat past the lease while nobody replaced the owner',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn['in_progress past its lease (rerun)'](harness, store, 'a')
      assert.ok((await recordOf(store, claim.id)).leaseLeftMs <= 0)
      assert.equal(await store.heartbeat(claim, leaseMs), 'written')
      seen(await store.claim(request('a', { recovery: 'rerun' })))
    },
  },
  {
    name: 'lets an owner complete after its lease ran out and nobody replaced it',
    async run(harness) {
      const store = await harness.open()
      for (const recovery of ['hold', 'rerun'] as const) {
        const claim = await own(store, recovery, { recovery })
        await harness.advance(10 * leaseMs)
        assert.equal(await store.complete(claim, answer('late'), retentionMs), 'written')
        const { outcome } = await recordOf(store, claim.id)
        assert.deepEqual(outcome && plain(outcome), plain(answer('late')))
      }
    },
  },
  {
    name: 'leaves a lease alone until it runs out',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { recovery: 'rerun' })
      await harness.advance(leaseMs - 2 * minuteMs)
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      assert.deepEqual(await store.sweep({ limit: 10, id: claim.id }), [])
      const record = seen(await store.claim(request('a', { recovery: 'rerun' })))
      assert.ok(record.leaseLeftMs > 0)
      assert.ok(record.leaseLeftMs <= 3 * minuteMs, `the store's clock moved, its lease did not: ${record.leaseLeftMs}`)
    },
  },
  {
    name: 'hands a dead lease that may be rerun to the next request, and counts the crash',
    async run(harness) {
      const store = await harness.open()
      const old = await rowIn['in_progress past its lease (rerun)'](harness, store, 'a')
      const created = (await recordOf(store, old.id)).createdAtMs
      const next = won(await store.claim(request('a', { recovery: 'hold' })))
      assert.deepEqual([next.from, next.attempt], ['dead-lease', 2])
      assertNextFence(store, old.fence, next.claim.fence)
      const record = await recordOf(store, old.id)
      assert.deepEqual([record.state, record.recovery, record.crashes], ['in_progress', 'hold', 1])
      assert.equal(record.createdAtMs, created)
    },
  },
  {
    name: 'sweeps dead leases by their recovery, counts the crash and keeps the fence',
    async run(harness) {
      const store = await harness.open()
      const held = await own(store, 'held', { recovery: 'hold' })
      const rerun = await own(store, 'rerun', { recovery: 'rerun' })
      await harness.advance(leaseMs + minuteMs)
      const alive = await own(store, 'alive')
      const swept = await store.sweep({ limit: 10 })
      const operation = 'payments.create'
      assert.deepEqual(
        new Map(swept.map(row => [row.id, [row.operation, row.to]])),
        new Map([
          [held.id, [operation, 'unknown']],
          [rerun.id, [operation, 'failed_retryable']],
        ]),
      )
      for (const claim of [held, rerun]) {
        const { fence, claimId, crashes, attempts } = await recordOf(store, claim.id)
        assert.deepEqual([fence, claimId, crashes, attempts], [claim.fence, claim.claimId, 1, 1])
      }
      await assertState(store, held.id, 'unknown')
      await assertState(store, alive.id, 'in_progress')
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      assert.equal(won(await store.claim(request('rerun'))).from, 'failed_retryable')
    },
  },
  {
    name: 'sweeps no more rows than it is told to, and the rest the next time',
    async run(harness) {
      const store = await harness.open()
      for (const key of ['a', 'b', 'c', 'd', 'e']) await own(store, key)
      await harness.advance(leaseMs + minuteMs)
      const sizes: number[] = []
      for (let turn = 0; turn < 4; turn += 1) sizes.push((await store.sweep({ limit: 2 })).length)
      assert.deepEqual(sizes, [2, 2, 1, 0])
    },
  },
  {
    name: 'sweeps only the row it is asked about',
    async run(harness) {
      const store = await harness.open()
      const mine = await own(store, 'mine')
      const other = await own(store, 'other')
      await harness.advance(leaseMs + minuteMs)
      assert.deepEqual(await store.sweep({ limit: 10, id: identity('nobody').id }), [])
      const swept = await store.sweep({ limit: 10, id: mine.id })
      assert.deepEqual(
        swept.map(row => row.id),
        [mine.id],
      )
      await assertState(store, other.id, 'in_progress')
    },
  },
  {
    name: 'sweeps each dead lease once when several sweepers work at once',
    async run(harness) {
      const store = await harness.open()
      const second = await harness.open()
      const claims = []
      for (let row = 0; row < 12; row += 1) claims.push(await own(store, `row ${row}`))
      await harness.advance(leaseMs + minuteMs)
      const swept: string[] = []
      // A sweeper may skip rows that another one has locked, so both sweep until neither finds any.
      for (let turn = 0; turn < 20; turn += 1) {
        const found = await Promise.all([store, second, store].map(sweeper => sweeper.sweep({ limit: 5 })))
        if (found.flat().length === 0) break
        swept.push(...found.flat().map(row => row.id))
      }
      assert.deepEqual(swept.toSorted(), claims.map(claim => claim.id).toSorted())
      for (const claim of claims) assert.equal((await recordOf(store, claim.id)).crashes, 1)
    },
  },
  {
    name: 'sweeps nothing that is not running',
    async run(harness) {
      const store = await harness.open()
      for (const state of ['completed', 'failed_retryable', 'unknown'] as const) {
        const claim = await rowIn[state](harness, store, state)
        await harness.advance(leaseMs + minuteMs)
        const before = await recordOf(store, claim.id)
        assert.deepEqual(await store.sweep({ limit: 10 }), [])
        assert.deepEqual(still(await recordOf(store, claim.id)), still(before))
      }
    },
  },
  {
    name: 'settles a swept row by the answer of its late owner, and keeps that as evidence',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn['in_progress past its lease (hold)'](harness, store, 'a')
      await store.sweep({ limit: 10 })
      assert.equal(await store.heartbeat(claim, leaseMs), 'claim-lost')
      assert.equal(await store.complete(claim, answer('late'), retentionMs), 'written')
      assert.equal(await store.complete(claim, answer('late again'), retentionMs), 'written')
      const { record, evidence, audit } = await store.inspect(claim.id)
      assert.equal(record?.state, 'completed')
      assert.deepEqual(record.outcome && plain(record.outcome), plain(answer('late')))
      const found = evidence.map(({ source, verdict, applied }) => ({ source, verdict, applied }))
      assert.deepEqual(found, [{ source: 'late-owner', verdict: 'happened', applied: true }])
      assert.deepEqual(audit, [])
    },
  },
  {
    name: 'settles a swept row by the proof of its late owner that nothing happened',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn['in_progress past its lease (hold)'](harness, store, 'a')
      await store.sweep({ limit: 10 })
      assert.equal(await store.fail(claim, retryNow), 'written')
      const { record, evidence } = await store.inspect(claim.id)
      assert.equal(record?.state, 'failed_retryable')
      const found = evidence.map(({ source, verdict, applied }) => ({ source, verdict, applied }))
      assert.deepEqual(found, [{ source: 'late-owner', verdict: 'never-happened', applied: true }])
      assert.equal(won(await store.claim(request('a'))).from, 'failed_retryable')
    },
  },
  {
    name: 'keeps the answer of a late owner it has to refuse',
    async run(harness) {
      const store = await harness.open()
      const stale = await rowIn['in_progress past its lease (rerun)'](harness, store, 'a')
      const current = await own(store, 'a')
      assert.equal(await store.complete(stale, answer('stale'), retentionMs), 'claim-lost')
      const { record, evidence } = await store.inspect(stale.id)
      assert.deepEqual([record?.state, record?.claimId], ['in_progress', current.claimId])
      const found = evidence.map(({ source, verdict, applied }) => ({ source, verdict, applied }))
      assert.deepEqual(found, [{ source: 'late-owner', verdict: 'happened', applied: false }])
    },
  },
  {
    name: 'writes no evidence in a normal life',
    async run(harness) {
      const store = await harness.open()
      const first = await own(store, 'a')
      await store.heartbeat(first, leaseMs)
      await store.fail(first, retryNow)
      const second = await own(store, 'a')
      await store.complete(second, answer(), retentionMs)
      const held = await own(store, 'b')
      await store.fail(held, notKnown)
      assert.deepEqual((await store.inspect(first.id)).evidence, [])
      assert.deepEqual((await store.inspect(held.id)).evidence, [])
    },
  },
]

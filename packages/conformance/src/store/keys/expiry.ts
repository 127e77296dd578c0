/** How long a row is retained, and what the reaper may delete. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { answer, assertAbout, assertNextFence, expiresInMs, hourMs, leaseMs, minuteMs } from '../fixture.ts'
import { otherFingerprint, own, recordOf, request, retentionMs, retryNow, rowIn, seen, won } from '../fixture.ts'

export const expiryCases: readonly StoreCase[] = [
  {
    name: 'keeps a completed row for its whole retention, not for its lease',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.completed(harness, store, 'a')
      await harness.advance(expiresInMs - hourMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      const record = seen(await store.claim(request('a')))
      assert.deepEqual([record.state, record.expired], ['completed', false])
      assert.ok(record.outcome)
      assert.equal(record.id, claim.id)
    },
  },
  {
    name: 'does not move the expiry of the grant when the retention fits into it',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      const granted = await recordOf(store, claim.id)
      await store.heartbeat(claim, leaseMs)
      assert.equal((await recordOf(store, claim.id)).expiresAtMs, granted.expiresAtMs)
      await store.complete(claim, answer(), retentionMs)
      const completed = await recordOf(store, claim.id)
      assert.equal(completed.expiresAtMs, granted.expiresAtMs)
      assert.ok(completed.completedAtMs !== undefined)
      assertAbout(completed.completedAtMs, granted.createdAtMs)
    },
  },
  ...[retentionMs, 2 * expiresInMs].map((keptMs): StoreCase => ({
    name: `tells the same expiry to who completed the row and to who sees it later, ${keptMs > expiresInMs ? 'moved' : 'as granted'}`,
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      await store.complete(claim, answer(), keptMs)
      const { expiresAtMs } = await recordOf(store, claim.id)
      assert.equal(seen(await store.claim(request('a'))).expiresAtMs, expiresAtMs)
      assert.equal((await recordOf(store, claim.id)).expiresAtMs, expiresAtMs)
    },
  })),
  {
    name: 'moves the expiry when the work took so long that less than the retention would be left',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      await harness.advance(expiresInMs + hourMs)
      assert.equal(await store.complete(claim, answer(), retentionMs), 'written')
      const record = await recordOf(store, claim.id)
      assert.equal(record.expired, false)
      assertAbout(record.expiresAtMs - (record.completedAtMs ?? 0), retentionMs)
      await harness.advance(retentionMs - hourMs)
      assert.equal(seen(await store.claim(request('a'))).state, 'completed')
    },
  },
  {
    name: 'writes the expiry anew with every grant, whether it comes later or sooner than the last',
    async run(harness) {
      const store = await harness.open()
      for (const [key, first, second] of [
        ['later', 3, 6],
        ['sooner', 12, 6],
      ] as const) {
        await store.fail(await own(store, key, { expiresInMs: first * hourMs }), retryNow)
        await harness.advance(2 * hourMs)
        const again = await own(store, key, { expiresInMs: second * hourMs })
        await store.fail(again, retryNow)
        await harness.advance((second - 1) * hourMs)
        assert.equal((await recordOf(store, again.id)).expired, false)
        await harness.advance(2 * hourMs)
        assert.equal((await recordOf(store, again.id)).expired, true)
      }
    },
  },
  {
    name: 'grants over an expired row as over none, with the next fence',
    async run(harness) {
      const store = await harness.open()
      for (const state of ['completed', 'failed_retryable'] as const) {
        const old = await rowIn[state](harness, store, state)
        const before = await recordOf(store, old.id)
        await harness.advance(expiresInMs + hourMs)
        assert.equal((await recordOf(store, old.id)).expired, true)
        const asked = request(state, { fingerprint: otherFingerprint, description: 'another life' })
        const next = won(await store.claim(asked))
        assert.deepEqual([next.from, next.attempt], ['expired', 1])
        assertNextFence(store, old.fence, next.claim.fence)
        const record = await recordOf(store, old.id)
        assert.deepEqual([record.state, record.attempts, record.crashes], ['in_progress', 1, 0])
        assert.deepEqual([record.description, record.lastErrorCode], ['another life', undefined])
        assert.deepEqual([record.outcome, record.completedAtMs, record.expired], [undefined, undefined, false])
        assert.ok(record.createdAtMs >= before.createdAtMs)
        seen(await store.claim(request(state)))
        won(await store.claim(request(`${state} beside it`)))
      }
    },
  },
  {
    name: 'answers the second life of a row with its own outcome',
    async run(harness) {
      const store = await harness.open()
      await rowIn.completed(harness, store, 'a')
      await harness.advance(expiresInMs + hourMs)
      const next = await own(store, 'a')
      await store.complete(next, answer('second life', { status: 200 }), retentionMs)
      const { outcome } = seen(await store.claim(request('a')))
      assert.equal(outcome?.status, 200)
    },
  },
  {
    name: 'raises the fence through many lives and attempts and never lowers it',
    async run(harness) {
      const store = await harness.open()
      let before = 0
      for (let life = 0; life < 3; life += 1) {
        const failing = await own(store, 'a')
        assertNextFence(store, before, failing.fence)
        await store.fail(failing, retryNow)
        const done = await own(store, 'a')
        assertNextFence(store, failing.fence, done.fence)
        await store.complete(done, answer(), retentionMs)
        await harness.advance(expiresInMs + hourMs)
        before = done.fence
      }
    },
  },
  {
    name: 'reaps expired completed and failed rows, and never a running or unknown one',
    async run(harness) {
      const store = await harness.open()
      const gone = [await rowIn.completed(harness, store, 'a'), await rowIn.failed_retryable(harness, store, 'b')]
      const kept = [
        await own(store, 'held', { recovery: 'hold' }),
        await own(store, 'rerun', { recovery: 'rerun' }),
        await rowIn.unknown(harness, store, 'unknown'),
        await own(store, 'late', { expiresInMs: 90 * expiresInMs }).then(async claim => {
          await store.complete(claim, answer(), retentionMs)
          return claim
        }),
      ]
      await harness.advance(40 * expiresInMs)
      assert.equal(await store.reap({ limit: 100 }), gone.length)
      for (const claim of gone) assert.equal(await store.read(claim.id), undefined)
      for (const claim of kept) assert.ok(await store.read(claim.id), `the reaper took ${claim.id}`)
      assert.equal(await store.reap({ limit: 100 }), 0)
    },
  },
  {
    name: 'reaps no more rows than it is told to, and the rest the next time',
    async run(harness) {
      const store = await harness.open()
      for (const key of ['a', 'b', 'c', 'd', 'e']) await rowIn.completed(harness, store, key)
      await harness.advance(expiresInMs + hourMs)
      const counts: number[] = []
      for (let turn = 0; turn < 4; turn += 1) counts.push(await store.reap({ limit: 2 }))
      assert.deepEqual(counts, [2, 2, 1, 0])
    },
  },
  {
    name: 'begins anew where a row was reaped',
    async run(harness) {
      const store = await harness.open()
      const old = await rowIn.completed(harness, store, 'a')
      await harness.advance(expiresInMs + hourMs)
      await store.reap({ limit: 10 })
      const next = won(await store.claim(request('a', { fingerprint: otherFingerprint })))
      assert.deepEqual([next.from, next.attempt], ['none', 1])
      assert.equal(await store.complete(old, answer('old'), retentionMs), 'claim-lost')
      assert.equal(await store.release(old.id, old.claimId), 'not-yours')
      assert.equal((await recordOf(store, old.id)).state, 'in_progress')
    },
  },
  {
    name: 'reaps or grants an expired row, never both to one owner',
    async run(harness) {
      const store = await harness.open()
      const second = await harness.open()
      for (const key of ['a', 'b', 'c', 'd']) await rowIn.completed(harness, store, key)
      await harness.advance(expiresInMs + hourMs)
      const racing = ['a', 'b', 'c', 'd'].map(key => store.claim(request(key)))
      const [, ...results] = await Promise.all([second.reap({ limit: 10 }), ...racing])
      for (const result of results) {
        const { claim } = won(result)
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.state, record.fence, record.claimId], ['in_progress', claim.fence, claim.claimId])
      }
    },
  },
  {
    name: 'never lets a row expire that is still owned, however long it takes',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { leaseMs: 80 * expiresInMs })
      await harness.advance(2 * expiresInMs)
      const record = seen(await store.claim(request('a', { fingerprint: otherFingerprint })))
      assert.deepEqual([record.state, record.expired, record.claimId], ['in_progress', false, claim.claimId])
      assert.ok(record.leaseLeftMs > minuteMs)
    },
  },
]

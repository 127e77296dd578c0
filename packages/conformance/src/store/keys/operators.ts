/** What an operator may do, and that each act is recorded in the same commit. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, assertAbout, assertNextFence, assertState, expiresInMs, hourMs, identity } from '../fixture.ts'
import {
  leaseMs,
  notKnown,
  own,
  plain,
  recordOf,
  request,
  retentionMs,
  retryNow,
  rowIn,
  seen,
  still,
  won,
} from '../fixture.ts'

const happened = { kind: 'happened', outcome: answer('settled by hand') } as const
const never = { kind: 'never-happened' } as const

export const operatorCases: readonly StoreCase[] = [
  {
    name: 'settles an unknown row as happened: the answer is replayed, with evidence and audit, and the fence stays',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      assert.deepEqual(await store.settle(claim.id, happened, act, retentionMs), { kind: 'settled' })
      const { record, evidence, audit } = await (await harness.open()).inspect(claim.id)
      assert.ok(record)
      assert.deepEqual([record.state, record.fence, record.expired], ['completed', claim.fence, false])
      assert.deepEqual(record.outcome && plain(record.outcome), plain(happened.outcome))
      assert.ok(record.completedAtMs !== undefined)
      assert.deepEqual(
        evidence.map(({ source, verdict, applied }) => ({ source, verdict, applied })),
        [{ source: 'operator', verdict: 'happened', applied: true }],
      )
      assert.deepEqual(
        audit.map(({ by, reason, act }) => ({ by, reason, act })),
        [{ ...act, act: 'settle' }],
      )
      for (const note of [...evidence, ...audit]) assertAbout(note.atMs, record.completedAtMs)
      assert.equal(typeof audit[0]?.detail, 'string')
      assert.equal(seen(await store.claim(request('a'))).state, 'completed')
    },
  },
  {
    name: 'settles an unknown row as never happened: the next request runs with the next fence',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      assert.deepEqual(await store.settle(claim.id, never, act, retentionMs), { kind: 'settled' })
      const { record, evidence, audit } = await store.inspect(claim.id)
      assert.deepEqual([record?.state, record?.fence, record?.outcome], ['failed_retryable', claim.fence, undefined])
      assert.deepEqual(
        evidence.map(({ source, verdict, applied }) => ({ source, verdict, applied })),
        [{ source: 'operator', verdict: 'never-happened', applied: true }],
      )
      assert.equal(audit.length, 1)
      const next = won(await store.claim(request('a')))
      assert.equal(next.from, 'failed_retryable')
      assertNextFence(store, claim.fence, next.claim.fence)
    },
  },
  {
    name: 'leaves the fence of a later attempt as it is, whoever settles it',
    async run(harness) {
      const store = await harness.open()
      for (const [key, verdict, state] of [
        ['happened', happened, 'completed'],
        ['never', never, 'failed_retryable'],
      ] as const) {
        const first = await own(store, key)
        assert.equal(await store.fail(first, retryNow), 'written')
        const claim = await own(store, key)
        assert.equal(await store.fail(claim, notKnown), 'written')
        assert.deepEqual(await store.settle(claim.id, verdict, act, retentionMs), { kind: 'settled' })
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.state, record.fence], [state, claim.fence])
        // The previous owner is still refused.
        assert.equal(await store.complete(first, answer('late'), retentionMs), 'claim-lost')
      }
    },
  },
  {
    name: 'keeps a settled row for the retention, however long it was unknown',
    async run(harness) {
      const store = await harness.open()
      const done = await rowIn.unknown(harness, store, 'happened')
      const undone = await rowIn.unknown(harness, store, 'never')
      await harness.advance(3 * expiresInMs)
      await store.settle(done.id, happened, act, retentionMs)
      await store.settle(undone.id, never, act, retentionMs)
      await harness.advance(retentionMs - hourMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.equal(seen(await store.claim(request('happened'))).expired, false)
      assert.equal((await recordOf(store, undone.id)).expired, false)
      await harness.advance(2 * hourMs)
      assert.equal(await store.reap({ limit: 10 }), 2)
    },
  },
  {
    name: 'settles nothing but an unknown row, and says what it found',
    async run(harness) {
      const store = await harness.open()
      for (const state of ['in_progress', 'completed', 'failed_retryable'] as const) {
        const claim = await rowIn[state](harness, store, state)
        const before = await recordOf(store, claim.id)
        for (const verdict of [happened, never]) {
          assert.deepEqual(await store.settle(claim.id, verdict, act, retentionMs), { kind: 'wrong-state', state })
        }
        const { record, evidence, audit } = await store.inspect(claim.id)
        assert.deepEqual(record && still(record), still(before))
        assert.deepEqual([evidence, audit], [[], []])
      }
      const dead = await rowIn['in_progress past its lease (hold)'](harness, store, 'dead')
      const answered = await store.settle(dead.id, never, act, retentionMs)
      assert.deepEqual(answered, { kind: 'wrong-state', state: 'in_progress' })
    },
  },
  {
    name: 'settles and forgets no row that does not exist, and writes no audit of it',
    async run(harness) {
      const store = await harness.open()
      const { id } = identity('nobody')
      assert.deepEqual(await store.settle(id, never, act, retentionMs), { kind: 'not-found' })
      assert.deepEqual(await store.forget(id, act), { kind: 'not-found' })
      assert.deepEqual(await store.inspect(id), { record: undefined, evidence: [], audit: [] })
    },
  },
  {
    name: 'settles once: of several verdicts at the same moment one counts',
    async run(harness) {
      const store = await harness.open()
      const second = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      const asked = [store, second, store, second].map((operator, turn) =>
        operator.settle(claim.id, turn % 2 === 0 ? happened : never, act, retentionMs),
      )
      const results = await Promise.all(asked)
      assert.equal(results.filter(result => result.kind === 'settled').length, 1)
      const { record, evidence, audit } = await store.inspect(claim.id)
      assert.equal(audit.length, 1)
      assert.deepEqual(
        evidence.map(entry => entry.applied),
        [true],
      )
      assert.equal(record?.state, evidence[0]?.verdict === 'happened' ? 'completed' : 'failed_retryable')
    },
  },
  {
    name: "refuses the late owner after a person's verdict, and keeps its answer as evidence",
    async run(harness) {
      const store = await harness.open()
      for (const verdict of [happened, never]) {
        const claim = await rowIn.unknown(harness, store, verdict.kind)
        await store.settle(claim.id, verdict, act, retentionMs)
        const before = await recordOf(store, claim.id)
        assert.equal(await store.complete(claim, answer('late'), retentionMs), 'claim-lost')
        assert.equal(await store.heartbeat(claim, leaseMs), 'claim-lost')
        const { record, evidence } = await store.inspect(claim.id)
        assert.deepEqual(record && still(record), still(before))
        assert.deepEqual(
          evidence.map(({ source, verdict, applied }) => ({ source, verdict, applied })),
          [
            { source: 'operator', verdict: verdict.kind, applied: true },
            { source: 'late-owner', verdict: 'happened', applied: false },
          ],
        )
      }
    },
  },
  {
    name: 'takes the verdict or the late answer, whichever comes first, never both',
    async run(harness) {
      const store = await harness.open()
      const second = await harness.open()
      for (let round = 0; round < 6; round += 1) {
        const claim = await rowIn.unknown(harness, store, `round ${round}`)
        const [settled, completed] = await Promise.all([
          second.settle(claim.id, happened, act, retentionMs),
          store.complete(claim, answer('late'), retentionMs),
        ])
        assert.notEqual(settled.kind === 'settled', completed === 'written')
        const { record, evidence } = await store.inspect(claim.id)
        const expected = completed === 'written' ? answer('late') : happened.outcome
        assert.deepEqual(record?.outcome && plain(record.outcome), plain(expected))
        assert.equal(evidence.filter(entry => entry.applied).length, 1)
      }
    },
  },
  {
    name: 'forgets a completed row: the row is gone, the audit stays',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.completed(harness, store, 'a')
      assert.deepEqual(await store.forget(claim.id, act), { kind: 'forgotten' })
      assert.equal(await store.read(claim.id), undefined)
      const { record, audit } = await store.inspect(claim.id)
      assert.equal(record, undefined)
      assert.deepEqual(
        audit.map(({ by, reason, act }) => ({ by, reason, act })),
        [{ ...act, act: 'forget' }],
      )
      assert.deepEqual(await store.forget(claim.id, act), { kind: 'not-found' })
      assert.equal(won(await store.claim(request('a'))).from, 'none')
      assert.equal((await store.inspect(claim.id)).audit.length, 1)
    },
  },
  {
    name: 'forgets nothing but a completed row, and says what it found',
    async run(harness) {
      const store = await harness.open()
      for (const state of ['in_progress', 'failed_retryable', 'unknown'] as const) {
        const claim = await rowIn[state](harness, store, state)
        const before = await recordOf(store, claim.id)
        assert.deepEqual(await store.forget(claim.id, act), { kind: 'wrong-state', state })
        const { record, audit } = await store.inspect(claim.id)
        assert.deepEqual(record && still(record), still(before))
        assert.deepEqual(audit, [])
      }
    },
  },
  {
    name: 'keeps the audit of a reaped row, in the order of the acts',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      await store.settle(claim.id, happened, { by: 'on-call', reason: 'first' }, retentionMs)
      await store.forget(claim.id, { by: 'kim', reason: 'second' })
      const next = await own(store, 'a')
      await store.fail(next, retryNow)
      await harness.advance(expiresInMs + hourMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
      await assertState(store, claim.id, undefined)
      const { audit } = await store.inspect(claim.id)
      assert.deepEqual(
        audit.map(entry => [entry.by, entry.reason, entry.act]),
        [
          ['on-call', 'first', 'settle'],
          ['kim', 'second', 'forget'],
        ],
      )
    },
  },
]

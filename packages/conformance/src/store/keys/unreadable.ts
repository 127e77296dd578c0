/** Rows that this version cannot read: each is reported as such, and no other row is affected. */
import assert from 'node:assert/strict'
import type { KeyRecord, Store } from 'latchkey'
import type { Damage, SpoilableHarness, SpoilCase } from '../../store-harness.ts'
import { atomicRequest, answer, act, expiresInMs, hourMs, identity, leaseMs, minuteMs, notKnown } from '../fixture.ts'
import { own, recordOf, request, retentionMs, retryNow, seen, won } from '../fixture.ts'
import { openReconciling } from '../reconcile/fixture.ts'
import { charge, openSteps, ownPhased, phasedRequest, resumeRequest } from '../steps/fixture.ts'

const ofCodes: readonly Damage[] = ['state', 'recovery']
const ofOutcomes: readonly Damage[] = ['outcome-format', 'outcome-cut', 'outcome-headers', 'outcome-missing']

async function completed(store: Store, key: string): Promise<string> {
  const claim = await own(store, key)
  assert.equal(await store.complete(claim, answer(key), retentionMs), 'written')
  return claim.id
}

async function spoiled(harness: SpoilableHarness, store: Store, damage: Damage): Promise<string> {
  const id = await completed(store, damage)
  await harness.spoil(id, damage)
  return id
}

function assertUnreadable(record: KeyRecord | undefined, damage: Damage): void {
  assert.equal(record?.state, 'unreadable', damage)
  assert.ok(record.why.length > 0, damage)
  assert.ok(record.fence > 0, damage)
  assert.deepEqual([record.operation, record.outcome], ['payments.create', undefined], damage)
}

export const unreadableCases: readonly SpoilCase[] = [
  {
    name: 'says of a row in a later format that it cannot be read, whichever way it is asked for, and never grants it',
    async run(harness) {
      const store = await harness.open()
      for (const damage of [...ofCodes, ...ofOutcomes]) {
        const id = await spoiled(harness, store, damage)
        assertUnreadable(await store.read(id), damage)
        assertUnreadable(seen(await store.claim(request(damage))), damage)
        assertUnreadable((await store.inspect(id)).record, damage)
        if (store.steps === undefined) continue
        assertUnreadable(seen(await store.claim(phasedRequest(damage))), damage)
        const { recovery: _recovery, leaseMs: _leaseMs, ...asked } = phasedRequest(damage)
        const queued = await store.enqueue({ ...asked, work: { version: 1, input: '{}' } })
        assert.equal(queued.kind, 'seen')
        assertUnreadable(queued.record, damage)
      }
    },
  },
  {
    name: 'answers every other member of a batch as if the row that cannot be read were not there',
    async run(harness) {
      const store = await harness.open()
      const damages = [...ofCodes, ...ofOutcomes]
      for (const damage of damages) await spoiled(harness, store, damage)
      for (const done of ['done 1', 'done 2']) await completed(store, done)
      const keys = ['new 1', ...damages, 'done 1', 'new 2', 'done 2', 'new 3']
      const claims = await Promise.all(keys.map(key => store.claim(request(key))))
      const told = claims.map(result => (result.kind === 'won' ? 'won' : result.record.state))
      const bad = damages.map(() => 'unreadable')
      assert.deepEqual(told, ['won', ...bad, 'completed', 'won', 'completed', 'won'])
      const records = await Promise.all(keys.map(key => store.read(identity(key).id)))
      const states = records.map(record => record?.state)
      assert.deepEqual(states, ['in_progress', ...bad, 'completed', 'in_progress', 'completed', 'in_progress'])
    },
  },
  {
    name: 'shows the row that cannot be read to a reservation, and the others are reserved',
    needs: ['transactions'],
    async run(harness) {
      const store = await harness.open()
      const { transactor } = store
      assert.ok(transactor)
      for (const damage of [...ofCodes, ...ofOutcomes]) {
        await spoiled(harness, store, damage)
        const end = await transactor.transaction(async tx => {
          const reserved = await transactor.reserve(tx, atomicRequest(damage))
          assert.equal(reserved.kind, 'seen', damage)
          assertUnreadable(reserved.record, damage)
          return 'rollback'
        })
        assert.equal(end.kind, 'rolled-back')
      }
    },
  },
  {
    name: 'lists the row among the others, and shows what can be read of it',
    async run(harness) {
      const store = await harness.open()
      const ids = [await completed(store, 'good')]
      for (const damage of [...ofCodes, ...ofOutcomes]) ids.push(await spoiled(harness, store, damage))
      const { records } = await store.list({ limit: 100 })
      assert.deepEqual(records.map(({ id }) => id).toSorted(), ids.toSorted())
      const unreadable = records.filter(({ state }) => state === 'unreadable').map(({ id }) => id)
      // A listing does not read outcomes.
      assert.deepEqual(unreadable.toSorted(), ofCodes.map(damage => identity(damage).id).toSorted())
    },
  },
  {
    name: 'forgets the row that cannot be read, audited, and its key is new again',
    async run(harness) {
      const store = await harness.open()
      for (const damage of [...ofCodes, ...ofOutcomes]) {
        const id = await spoiled(harness, store, damage)
        assert.deepEqual(await store.forget(id, act), { kind: 'forgotten' }, damage)
        const { record, audit } = await store.inspect(id)
        assert.equal(record, undefined)
        assert.deepEqual(
          audit.map(entry => [entry.act, entry.by]),
          [['forget', act.by]],
        )
        assert.equal(won(await store.claim(request(damage))).from, 'none')
      }
    },
  },
  {
    name: 'forgets a row of a foreign recovery in every state, but not while the lease of its owner runs',
    async run(harness) {
      const store = await harness.open()
      const running = await own(store, 'running')
      const failed = await own(store, 'failed')
      await store.fail(failed, retryNow)
      const unknown = await own(store, 'unknown')
      await store.fail(unknown, notKnown)
      for (const { id } of [running, failed, unknown]) await harness.spoil(id, 'recovery')
      assert.deepEqual(await store.forget(running.id, act), { kind: 'wrong-state', state: 'in_progress' })
      for (const { id } of [failed, unknown]) assert.deepEqual(await store.forget(id, act), { kind: 'forgotten' })
      await harness.advance(leaseMs + minuteMs)
      assert.deepEqual(await store.forget(running.id, act), { kind: 'forgotten' })
      assert.deepEqual(await store.list({ limit: 10, state: 'unknown' }), { records: [], next: undefined })
    },
  },
  {
    name: 'neither settles the row that cannot be read nor grants it to a request that it would fit',
    async run(harness) {
      const store = await harness.open()
      const verdict = { kind: 'happened', outcome: answer() } as const
      for (const damage of ofCodes) {
        const claim = await own(store, damage)
        await store.fail(claim, notKnown)
        await harness.spoil(claim.id, damage)
        const settled = await store.settle(claim.id, verdict, act, retentionMs)
        assert.deepEqual(settled, { kind: 'wrong-state', state: 'unreadable' }, damage)
      }
      const failed = await own(store, 'failed')
      await store.fail(failed, retryNow)
      await harness.spoil(failed.id, 'recovery')
      assertUnreadable(seen(await store.claim(request('failed'))), 'recovery')
    },
  },
  {
    name: 'applies no evidence to a row that cannot be read, and keeps it',
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      for (const damage of ofCodes) {
        const claim = await own(store, damage)
        await store.fail(claim, notKnown)
        const finding = { source: 'webhook', ref: damage, verdict: { kind: 'happened', outcome: answer() } } as const
        const kept = await reconciliation.keep({ id: claim.id, effect: undefined }, finding)
        assert.equal(kept.kind, 'kept')
        await harness.spoil(claim.id, damage)
        const applied = await reconciliation.apply(kept.evidenceId, { quarantineMs: 0, retentionMs })
        assert.equal(applied.kind, 'not-applicable', damage)
        const { evidence } = await store.inspect(claim.id)
        assert.deepEqual(
          evidence.map(one => [one.verdict, one.applied]),
          [['happened', false]],
        )
      }
    },
  },
  {
    name: 'lets a completed row expire and be reaped, whatever its outcome is, and grants its key anew',
    async run(harness) {
      const store = await harness.open()
      for (const damage of ofOutcomes) await spoiled(harness, store, damage)
      await harness.advance(expiresInMs + hourMs)
      const [first, ...others] = ofOutcomes
      assert.ok(first)
      assert.equal((await recordOf(store, identity(first).id)).expired, true)
      assert.equal(won(await store.claim(request(first))).from, 'expired')
      assert.equal(await store.reap({ limit: 100 }), others.length)
    },
  },
  {
    name: 'sweeps, reaps and finds work beside rows that it cannot read',
    async run(harness) {
      const store = await harness.open()
      const old = await own(store, 'old')
      await store.complete(old, answer(), retentionMs)
      await harness.advance(expiresInMs + hourMs)
      for (const damage of [...ofCodes, ...ofOutcomes]) await spoiled(harness, store, damage)
      const owners = [await own(store, 'dead'), await own(store, 'foreign state'), await own(store, 'foreign recovery')]
      await harness.spoil(identity('foreign state').id, 'state')
      await harness.spoil(identity('foreign recovery').id, 'recovery')
      await harness.advance(leaseMs + minuteMs)
      const swept = await store.sweep({ limit: 10 })
      assert.ok(swept.some(({ id }) => id === owners[0]?.id))
      assert.ok(!swept.some(({ id }) => id === owners[1]?.id))
      assert.equal(await store.reap({ limit: 100 }), 1)
      assert.deepEqual(await store.resumable({ limit: 10 }), [])
    },
  },
  {
    name: 'grants phased work whose journal it cannot read, and says so, so that its owner can park it',
    needs: ['steps'],
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const claim = await ownPhased(store, 'a')
      assert.equal(await steps.openIntent(claim, charge(0, { windowMs: 24 * hourMs }), leaseMs), 'written')
      await harness.spoil(claim.id, 'step')
      await harness.advance(leaseMs + minuteMs)
      assert.deepEqual(
        (await store.resumable({ limit: 10 })).map(({ identity: { id } }) => id),
        [claim.id],
      )
      const next = won(await store.claim(resumeRequest('a')))
      for (const journal of [next.journal, await steps.readJournal(claim.id)]) {
        assert.ok(journal !== undefined && journal.steps === undefined, 'expected a journal that cannot be read')
        assert.ok(journal.why.length > 0)
      }
      assert.equal(await store.park(next.claim, 'journal-unreadable'), 'written')
      assert.deepEqual(await store.resumable({ limit: 10 }), [])
    },
  },
]

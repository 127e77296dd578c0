/** Deferred work: written with its input in one commit, and started by the worker that claims it. */
import assert from 'node:assert/strict'
import type { EnqueueRequest, KeyRecord, Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { open, reserved } from '../atomic/fixture.ts'
import { act, answer, assertAbout, assertNextFence, assertState, atomicRequest, expiresInMs } from '../fixture.ts'
import { hourMs, identity, leaseMs, minuteMs, newClaimId, notKnown, otherFingerprint, own } from '../fixture.ts'
import { recordOf, request, retentionMs, retryNow, rowIn, seen, still, won } from '../fixture.ts'
import { unusualScopes } from '../keys/listing.ts'
import { applying, finding, happened, openReconciling, storeEvidence, never, whole } from '../reconcile/fixture.ts'
import { charge, finishEffect, openSteps, ownPhased, phasedRequest, resumeRequest, work } from './fixture.ts'

/** Work for later, under this key. */
export function job(key: string, over: Partial<EnqueueRequest> = {}): EnqueueRequest {
  const { identity: identified, claimId, fingerprint, description } = request(key)
  return { identity: identified, claimId, fingerprint, expiresInMs, description, work, ...over }
}

async function queue(store: Store, key: string, over: Partial<EnqueueRequest> = {}): Promise<KeyRecord> {
  const asked = job(key, over)
  assert.deepEqual(await store.enqueue(asked), { kind: 'queued' })
  return recordOf(store, asked.identity.id)
}

async function seenBy(store: Store, asked: EnqueueRequest): Promise<KeyRecord> {
  const result = await store.enqueue(asked)
  assert.ok(result.kind === 'seen', `expected the row to be seen, but it was ${result.kind}`)
  return result.record
}

async function overdueIds(store: Store): Promise<readonly string[]> {
  return (await store.resumable({ limit: 10 })).filter(row => row.overdue).map(row => row.identity.id)
}

export const deferredCases: readonly StoreCase[] = [
  {
    name: 'queues work that nobody asked for yet: pending, due, without an attempt, with its input',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const asked = job('a', { description: 'export 7' })
      assert.deepEqual(await store.enqueue(asked), { kind: 'queued' })
      const record = await recordOf(await harness.open(), asked.identity.id)
      assert.deepEqual([record.state, record.recovery, record.attempts], ['pending', 'resume', 0])
      assert.deepEqual([record.crashes, record.parked, record.expired, record.gone], [0, false, false, false])
      assert.deepEqual([record.claimId, record.description], [asked.claimId, 'export 7'])
      assert.deepEqual([record.scope, record.operation], [asked.identity.scope, asked.identity.operation])
      assert.deepEqual([record.outcome, record.completedAtMs, record.leaseLeftMs], [undefined, undefined, 0])
      assertNextFence(store, 0, record.fence)
      assert.ok(record.dueInMs <= 0)
      assertAbout(record.expiresAtMs - record.createdAtMs, expiresInMs)
      assert.deepEqual(await steps.readJournal(record.id), { work, overdue: false, steps: [] })
    },
  },
  {
    name: 'gives the scope of queued work back byte for byte',
    async run(harness) {
      const { store } = await openSteps(harness)
      for (const [index, scope] of unusualScopes.entries()) {
        const record = await queue(store, 'a', { identity: identity(`queued ${index}`, { scope }) })
        assert.equal(record.scope, scope)
      }
    },
  },
  {
    name: 'queues the work of one key once, of many who ask at once',
    async run(harness) {
      const stores = [await harness.open(), await harness.open()]
      const asked = Array.from({ length: 5 }, () => stores.map(store => store.enqueue(job('a'))))
      const results = await Promise.all(asked.flat())
      assert.equal(results.filter(result => result.kind === 'queued').length, 1)
    },
  },
  {
    name: 'shows the row to who asks again, also with another fingerprint, and leaves it and its input alone',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const first = await queue(store, 'a')
      const otherWork = { version: 9, input: '{"another":1}' }
      for (const over of [{}, { fingerprint: otherFingerprint }, { description: 'another' }]) {
        const record = await seenBy(store, job('a', { work: otherWork, expiresInMs: hourMs, ...over }))
        assert.deepEqual(still(record), still(first))
      }
      assert.deepEqual(still(await recordOf(store, first.id)), still(first))
      assert.deepEqual((await steps.readJournal(first.id))?.work, work)
    },
  },
  {
    name: 'queues nothing over a row in any state that has not expired, parked ones included',
    async run(harness) {
      const { store } = await openSteps(harness)
      await store.park(await own(store, 'parked'), 'poison')
      for (const state of ['in_progress', 'completed', 'failed_retryable', 'unknown'] as const)
        await rowIn[state](harness, store, state)
      await rowIn['in_progress past its lease (rerun)'](harness, store, 'dead')
      for (const key of ['parked', 'in_progress', 'completed', 'failed_retryable', 'unknown', 'dead']) {
        const before = await recordOf(store, identity(key).id)
        assert.deepEqual(still(await seenBy(store, job(key))), still(before), key)
        assert.deepEqual(still(await recordOf(store, before.id)), still(before), key)
      }
      const { outcome } = await seenBy(store, job('completed'))
      assert.equal(outcome?.status, 201)
      await harness.advance(3 * expiresInMs)
      assert.equal((await seenBy(store, job('parked'))).parked, true)
      assert.equal((await seenBy(store, job('unknown'))).state, 'unknown')
    },
  },
  {
    name: 'queues over an expired row as over none: the next fence, another input, no steps',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store, steps } = fixture
      for (const key of ['completed', 'failed']) {
        const claim = await ownPhased(store, key)
        await finishEffect(fixture, claim)
        if (key === 'failed') await store.fail(claim, retryNow)
        else await store.complete(claim, answer(), retentionMs)
        await harness.advance(expiresInMs + hourMs)
        const otherWork = { version: 9, input: '{"another":1}' }
        const record = await queue(store, key, { work: otherWork, fingerprint: otherFingerprint })
        assertNextFence(store, claim.fence, record.fence)
        assert.deepEqual([record.state, record.recovery, record.attempts], ['pending', 'resume', 0])
        assert.deepEqual([record.outcome, record.lastErrorCode, record.expired], [undefined, undefined, false])
        assert.deepEqual(await steps.readJournal(claim.id), { work: otherWork, overdue: false, steps: [] })
        assert.equal(await store.complete(claim, answer('stale'), retentionMs), 'claim-lost')
        await assertState(store, claim.id, 'pending')
      }
    },
  },
  {
    name: 'grants queued work as its first attempt, with its journal, to a worker or a request that asks for the same',
    async run(harness) {
      const { store } = await openSteps(harness)
      for (const [key, asked] of [
        ['worker', resumeRequest('worker')],
        ['request', phasedRequest('request', { work: { version: 9, input: '{"another":1}' } })],
      ] as const) {
        const queued = await queue(store, key)
        seen(await store.claim({ ...asked, claimId: newClaimId(), fingerprint: otherFingerprint }))
        const first = won(await store.claim(asked))
        assert.deepEqual([first.from, first.attempt, first.crashes], ['pending', 1, 0])
        assertNextFence(store, queued.fence, first.claim.fence)
        assert.deepEqual(first.journal, { work, overdue: false, steps: [] })
        const record = await recordOf(store, queued.id)
        assert.deepEqual([record.state, record.claimId, record.attempts], ['in_progress', asked.claimId, 1])
        assert.equal(await store.complete(first.claim, answer(), retentionMs), 'written')
      }
    },
  },
  {
    name: 'grants queued work to one of many that ask at once',
    async run(harness) {
      const stores = [await harness.open(), await harness.open()]
      const [store] = stores
      assert.ok(store)
      await queue(store, 'a')
      const asked = Array.from({ length: 5 }, () => stores.map(each => each.claim(resumeRequest('a'))))
      const results = await Promise.all(asked.flat())
      assert.equal(results.filter(result => result.kind === 'won').length, 1)
    },
  },
  {
    name: 'lets nobody write as the owner of queued work: it has none',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const queued = await queue(store, 'a')
      const { id, fence, claimId } = queued
      const claim = { id, fence, claimId }
      assert.equal(await store.complete(claim, answer(), retentionMs), 'claim-lost')
      assert.equal(await store.fail(claim, retryNow), 'claim-lost')
      assert.equal(await store.fail(claim, notKnown), 'claim-lost')
      assert.equal(await store.heartbeat(claim, leaseMs), 'claim-lost')
      assert.equal(await store.park(claim, 'poison'), 'claim-lost')
      assert.equal(await store.release(id, claimId), 'not-yours')
      assert.equal(await steps.recordResult(claim, { position: 0, value: '1' }, leaseMs), 'claim-lost')
      assert.deepEqual(still(await recordOf(store, id)), still(queued))
    },
  },
  {
    name: 'lists queued work as resumable until it is claimed, and never lets it expire',
    async run(harness) {
      const { store } = await openSteps(harness)
      const { id } = await queue(store, 'a')
      await harness.advance(3 * expiresInMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      assert.equal((await recordOf(store, id)).expired, false)
      const [row, ...others] = await store.resumable({ limit: 10 })
      assert.deepEqual([row?.identity, row?.crashes, others], [identity('a'), 0, []])
      assert.deepEqual(Buffer.from(row?.fingerprint ?? []), Buffer.from(request('a').fingerprint))
      won(await store.claim(resumeRequest('a')))
      assert.deepEqual(await store.resumable({ limit: 10 }), [])
    },
  },
  {
    name: 'tells that the deadline of queued work has passed, by its own clock, and still grants it',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const { id } = await queue(store, 'a', { work: { ...work, deadlineInMs: 2 * hourMs } })
      await queue(store, 'no deadline')
      assert.deepEqual(await steps.readJournal(id), { work, overdue: false, steps: [] })
      await harness.advance(hourMs)
      assert.equal((await steps.readJournal(id))?.overdue, false)
      const early = won(await store.claim(resumeRequest('a')))
      assert.equal(early.journal?.overdue, false)
      await store.fail(early.claim, retryNow)
      assert.deepEqual(await overdueIds(store), [])
      await harness.advance(hourMs + minuteMs)
      assert.deepEqual(await steps.readJournal(id), { work, overdue: true, steps: [] })
      assert.deepEqual(await overdueIds(store), [id])
      const late = won(await store.claim(resumeRequest('a')))
      assert.deepEqual(late.journal, { work, overdue: true, steps: [] })
      assert.equal(won(await store.claim(resumeRequest('no deadline'))).journal?.overdue, false)
    },
  },
  {
    name: 'lists work with a step in its journal as begun, whenever its deadline was',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const claim = await ownPhased(store, 'a', { work: { ...work, deadlineInMs: hourMs } })
      const unbegun = await ownPhased(store, 'b', { work: { ...work, deadlineInMs: hourMs } })
      assert.equal(await steps.openIntent(claim, charge(0, { windowMs: 10 * hourMs }), leaseMs), 'written')
      await harness.advance(hourMs + minuteMs)
      const rows = await store.resumable({ limit: 10 })
      assert.deepEqual(rows.map(row => row.identity.id).toSorted(), [claim.id, unbegun.id].toSorted())
      assert.deepEqual(await overdueIds(store), [unbegun.id])
    },
  },
  {
    name: 'keeps the deadline of work that a request begins at once, too',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const claim = await ownPhased(store, 'a', { work: { ...work, deadlineInMs: hourMs } })
      assert.equal((await steps.readJournal(claim.id))?.overdue, false)
      await harness.advance(hourMs + minuteMs)
      assert.equal((await steps.readJournal(claim.id))?.overdue, true)
    },
  },
  {
    name: 'keeps evidence about queued work and applies none: it is not unknown',
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      const queued = await queue(store, 'a')
      for (const verdict of [happened, never]) {
        const evidenceId = await storeEvidence(store, whole(queued), finding(verdict))
        const applied = await store.reconciliation.apply(evidenceId, { ...applying, quarantineMs: 0 })
        assert.deepEqual(applied, { kind: 'not-applicable', state: 'pending' })
      }
      const settled = await store.settle(queued.id, never, act, retentionMs)
      assert.deepEqual(settled, { kind: 'wrong-state', state: 'pending' })
      assert.deepEqual(await store.forget(queued.id, act), { kind: 'wrong-state', state: 'pending' })
      assert.deepEqual(await store.unpark(queued.id, act), { kind: 'not-parked' })
      assert.deepEqual(still(await recordOf(store, queued.id)), still(queued))
    },
  },
  {
    name: 'lists queued work by its state',
    async run(harness) {
      const { store } = await openSteps(harness)
      const { id } = await queue(store, 'a')
      await own(store, 'running')
      const { records } = await store.list({ limit: 10, state: 'pending' })
      assert.deepEqual(
        records.map(record => record.id),
        [id],
      )
    },
  },
  {
    name: 'reserves queued work for a transaction that asks for the same, and for no other',
    needs: ['transactions'],
    async run(harness) {
      const { store, transactor } = await open(harness)
      const { fence } = await queue(store, 'a')
      assert.deepEqual(await reserved(transactor, atomicRequest('a')), { kind: 'free', fence, from: 'pending' })
      const other = await reserved(transactor, atomicRequest('a', { fingerprint: otherFingerprint }))
      assert.equal(other.kind, 'seen')
    },
  },
]

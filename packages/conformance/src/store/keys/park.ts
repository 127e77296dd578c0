/** A mark that stops all automatic work on a row until an operator removes it. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import {
  act,
  answer,
  assertNextFence,
  expiresInMs,
  hourMs,
  identity,
  leaseMs,
  minuteMs,
  newClaimId,
} from '../fixture.ts'
import { otherFingerprint, own, recordOf, request, retentionMs, retryNow, rowIn, seen, still, won } from '../fixture.ts'
import { charge, firstStep, impostors, openSteps, ownPhased, phasedRequest, withIntent } from '../steps/fixture.ts'

export const parkCases: readonly StoreCase[] = [
  {
    name: 'parks a row for its owner, with the cause, and says written again after a lost reply',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      assert.equal((await recordOf(store, claim.id)).parked, false)
      for (let sent = 0; sent < 2; sent += 1) assert.equal(await store.park(claim, 'definition-changed'), 'written')
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.parked, record.fence], ['failed_retryable', true, claim.fence])
      assert.equal(record.lastErrorCode, 'definition-changed')
    },
  },
  {
    name: 'parks nothing for who is not the owner, or no longer',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      for (const impostor of impostors(claim)) assert.equal(await store.park(impostor, 'poison'), 'claim-lost')
      assert.equal((await recordOf(store, claim.id)).parked, false)
      for (const state of ['completed', 'failed_retryable', 'unknown', 'absent'] as const) {
        const ended = await rowIn[state](harness, store, state)
        assert.equal(await store.park(ended, 'poison'), 'claim-lost', state)
        assert.notEqual((await store.read(ended.id))?.parked, true, state)
      }
    },
  },
  {
    name: 'parks for an overdue owner that nobody replaced',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      await harness.advance(leaseMs + minuteMs)
      assert.equal(await store.park(claim, 'poison'), 'written')
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
    },
  },
  {
    name: 'grants no claim of a parked row, not even past its expiry, and never reaps it',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { recovery: 'rerun' })
      await store.park(claim, 'poison')
      for (const laterMs of [0, 3 * expiresInMs]) {
        await harness.advance(laterMs)
        for (const fingerprint of [request('a').fingerprint, otherFingerprint]) {
          const record = seen(await store.claim(request('a', { recovery: 'rerun', fingerprint })))
          assert.deepEqual([record.state, record.parked, record.expired], ['failed_retryable', true, false])
        }
        assert.equal(await store.reap({ limit: 10 }), 0)
        assert.deepEqual(await store.sweep({ limit: 10 }), [])
        assert.deepEqual(await store.resumable({ limit: 10 }), [])
      }
    },
  },
  {
    name: 'lists parked rows, and only those',
    async run(harness) {
      const store = await harness.open()
      await store.park(await own(store, 'a'), 'poison')
      await store.park(
        await own(store, 'b', { identity: identity('b', { operation: 'orders.create' }) }),
        'definition-changed',
      )
      await store.fail(await own(store, 'failed'), retryNow)
      await own(store, 'running')
      const ids = async (listing: object) =>
        (await store.list({ limit: 10, parked: true, ...listing })).records.map(record => record.id).toSorted()
      const both = [identity('a').id, identity('b').id].toSorted()
      assert.deepEqual(await ids({}), both)
      assert.deepEqual(await ids({ state: 'failed_retryable' }), both)
      assert.deepEqual(await ids({ state: 'unknown' }), [])
      assert.deepEqual(await ids({ operation: 'orders.create' }), [identity('b').id])
      const first = await store.list({ limit: 1, parked: true })
      assert.deepEqual([first.records.length, first.records[0]?.id, first.next], [1, both[0], both[0]])
      const second = await store.list({ limit: 1, parked: true, after: both[0] ?? '' })
      assert.deepEqual([second.records[0]?.id, second.next], [both[1], undefined])
      await store.unpark(identity('a').id, act)
      assert.deepEqual(await ids({}), [identity('b').id])
      assert.equal((await store.list({ limit: 10 })).records.length, 4)
    },
  },
  {
    name: 'unparks for a person who says why: due now, no crashes, audited, and the fence stays',
    async run(harness) {
      const store = await harness.open()
      const first = await own(store, 'a', { recovery: 'rerun' })
      await harness.advance(leaseMs + minuteMs)
      const claim = await own(store, 'a', { recovery: 'rerun' })
      await store.park(claim, 'poison')
      assert.equal((await recordOf(store, claim.id)).crashes, 1)
      assert.deepEqual(await store.unpark(claim.id, act), { kind: 'unparked' })
      const { record, audit } = await (await harness.open()).inspect(claim.id)
      assert.ok(record)
      assert.deepEqual([record.state, record.parked, record.crashes], ['failed_retryable', false, 0])
      assert.deepEqual([record.fence, record.attempts], [claim.fence, 2])
      assert.ok(record.dueInMs <= 0)
      assert.deepEqual(
        audit.map(entry => [entry.by, entry.reason, entry.act, typeof entry.detail]),
        [[act.by, act.reason, 'unpark', 'string']],
      )
      const next = won(await store.claim(request('a')))
      assert.deepEqual([next.from, next.attempt, next.crashes], ['failed_retryable', 3, 0])
      assertNextFence(store, claim.fence, next.claim.fence)
      assert.ok(first.fence < claim.fence)
    },
  },
  {
    name: 'gives a row that is unparked after its expiry the time again that it was given at first',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      await store.park(claim, 'poison')
      await harness.advance(3 * expiresInMs)
      await store.unpark(claim.id, act)
      assert.equal((await recordOf(store, claim.id)).expired, false)
      assert.equal(await store.reap({ limit: 10 }), 0)
      seen(await store.claim(request('a', { fingerprint: otherFingerprint })))
      assert.equal(won(await store.claim(request('a'))).from, 'failed_retryable')
    },
  },
  {
    name: 'unparks nothing that is not parked, and writes nothing down then',
    async run(harness) {
      const store = await harness.open()
      assert.deepEqual(await store.unpark(newClaimId(), act), { kind: 'not-found' })
      for (const state of ['in_progress', 'completed', 'failed_retryable', 'unknown'] as const) {
        const { id } = await rowIn[state](harness, store, state)
        const before = still(await recordOf(store, id))
        assert.deepEqual(await store.unpark(id, act), { kind: 'not-parked' })
        const { record, audit } = await store.inspect(id)
        assert.deepEqual(record && still(record), before)
        assert.deepEqual(audit, [])
      }
    },
  },
  {
    name: 'unparks once when two people do it at once',
    async run(harness) {
      const store = await harness.open()
      const second = await harness.open()
      const claim = await own(store, 'a')
      await store.park(claim, 'poison')
      const results = await Promise.all([store.unpark(claim.id, act), second.unpark(claim.id, act)])
      assert.deepEqual(results.map(result => result.kind).toSorted(), ['not-parked', 'unparked'])
      assert.equal((await store.inspect(claim.id)).audit.length, 1)
    },
  },
  {
    name: 'refuses the late answer of an owner that parked its row, and keeps it as evidence',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      await store.park(claim, 'poison')
      assert.equal(await store.complete(claim, answer(), retentionMs), 'claim-lost')
      const { record, evidence } = await store.inspect(claim.id)
      assert.deepEqual([record?.state, record?.parked], ['failed_retryable', true])
      assert.deepEqual(
        evidence.map(each => [each.verdict, each.applied]),
        [['happened', false]],
      )
    },
  },
  {
    name: 'leaves the open intents of a parked row open, through the unparking too',
    needs: ['steps'],
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await withIntent(fixture, 'a', 24 * hourMs)
      await fixture.store.park(claim, 'definition-changed')
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0 repeatable')
      await fixture.store.unpark(claim.id, act)
      const next = won(await fixture.store.claim(phasedRequest('a')))
      assert.deepEqual([next.from, next.journal?.steps?.[0]?.state], ['failed_retryable', 'open'])
    },
  },
  {
    name: 'keeps the steps of a parked row, however old it is',
    needs: ['steps'],
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await fixture.steps.openIntent(claim, charge(0), leaseMs)
      await fixture.store.park(claim, 'poison')
      await harness.advance(3 * expiresInMs)
      assert.equal(await fixture.store.reap({ limit: 10 }), 0)
      seen(await fixture.store.claim(phasedRequest('a')))
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0')
    },
  },
]

/** Phased work whose owner is gone: which claim may resume it, and with what input. */
import assert from 'node:assert/strict'
import type { Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, assertNextFence, assertState, expiresInMs, hourMs, identity, leaseMs } from '../fixture.ts'
import { minuteMs, notKnown, otherFingerprint, own, recordOf, request, retentionMs, retryNow } from '../fixture.ts'
import { seen, won } from '../fixture.ts'
import { charge, finishEffect, firstStep, openSteps, ownPhased, phasedRequest, resumeRequest } from './fixture.ts'
import { withIntent, work } from './fixture.ts'

const otherWork = { version: 9, input: '{"another":"input"}' } as const

async function resumableIds(store: Store, limit = 100): Promise<readonly string[]> {
  return (await store.resumable({ limit })).map(row => row.identity.id).toSorted()
}

function idsOf(...keys: readonly string[]): readonly string[] {
  return keys.map(key => identity(key).id).toSorted()
}

export const resumeCases: readonly StoreCase[] = [
  {
    name: 'grants phased work with a dead lease, with its first input and the steps behind it, and counts the crash',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await finishEffect(fixture, claim, { result: '7' })
      assert.equal(seen(await fixture.store.claim(phasedRequest('a'))).state, 'in_progress')
      await harness.advance(leaseMs + minuteMs)
      const next = won(await fixture.store.claim(phasedRequest('a', { work: otherWork })))
      assert.deepEqual([next.from, next.attempt, next.crashes], ['dead-lease', 2, 1])
      assertNextFence(fixture.store, claim.fence, next.claim.fence)
      assert.deepEqual(next.journal?.work, work)
      assert.deepEqual(
        next.journal?.steps?.map(step => [step.name, step.state, step.value]),
        [['record', 'done', '7']],
      )
    },
  },
  {
    name: 'grants it to a worker that has no input to give, and not to another request under the same key',
    async run(harness) {
      const fixture = await openSteps(harness)
      await ownPhased(fixture.store, 'a')
      await harness.advance(leaseMs + minuteMs)
      seen(await fixture.store.claim(phasedRequest('a', { fingerprint: otherFingerprint })))
      const next = won(await fixture.store.claim(resumeRequest('a')))
      assert.deepEqual(next.journal, { work, overdue: false, steps: [] })
    },
  },
  {
    name: 'grants it over an open intent that may be repeated, and never over one that may not',
    async run(harness) {
      const fixture = await openSteps(harness)
      const repeatable = await withIntent(fixture, 'repeatable', 24 * hourMs)
      const held = {
        'window past': await withIntent(fixture, 'window past', 2 * minuteMs),
        'no window': await withIntent(fixture, 'no window'),
      }
      await harness.advance(leaseMs + minuteMs)
      for (const [key, { fence }] of Object.entries(held)) {
        const record = seen(await fixture.store.claim(phasedRequest(key)))
        assert.deepEqual([record.state, record.crashes, record.fence], ['in_progress', 0, fence], key)
      }
      const next = won(await fixture.store.claim(phasedRequest('repeatable')))
      assert.equal(next.claim.id, repeatable.id)
      const [step] = next.journal?.steps ?? []
      assert.deepEqual([step?.state, step?.repeatable], ['open', true])
    },
  },
  {
    name: 'grants it when its effects are done or known not to have happened',
    async run(harness) {
      const fixture = await openSteps(harness)
      const done = await withIntent(fixture, 'a')
      await fixture.steps.recordResult(done, { position: 0, value: '1' }, leaseMs)
      await harness.advance(leaseMs + minuteMs)
      assert.equal(won(await fixture.store.claim(phasedRequest('a'))).from, 'dead-lease')
      await fixture.store.fail(await withIntent(fixture, 'b'), retryNow)
      await ownPhased(fixture.store, 'b')
      await harness.advance(leaseMs + minuteMs)
      const next = won(await fixture.store.claim(phasedRequest('b')))
      assert.deepEqual([next.from, next.journal?.steps?.[0]?.state], ['dead-lease', 'again'])
    },
  },
  {
    name: 'gives every next attempt the journal, whatever ended the one before',
    async run(harness) {
      const fixture = await openSteps(harness)
      const first = await ownPhased(fixture.store, 'a')
      await finishEffect(fixture, first, { result: '7' })
      await fixture.store.fail(first, { ...retryNow, dueInMs: 2 * hourMs })
      seen(await fixture.store.claim(phasedRequest('a')))
      await harness.advance(3 * hourMs)
      const second = won(await fixture.store.claim(phasedRequest('a', { work: otherWork })))
      assert.deepEqual([second.from, second.crashes, second.journal?.work], ['failed_retryable', 0, work])
      await fixture.store.release(second.claim.id, second.claim.claimId)
      const third = won(await fixture.store.claim(resumeRequest('a')))
      assert.deepEqual([third.journal?.work, third.journal?.steps?.length], [work, 1])
    },
  },
  {
    name: 'begins anew over an expired row: another input, no steps',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store, steps } = fixture
      for (const key of ['completed', 'failed']) {
        const claim = await ownPhased(store, key)
        await finishEffect(fixture, claim)
        await steps.openIntent(claim, charge(1), leaseMs)
        if (key === 'failed') await store.fail(claim, retryNow)
        else await store.complete(claim, answer(), retentionMs)
        await harness.advance(expiresInMs + hourMs)
        const asked = phasedRequest(key, { work: otherWork, fingerprint: otherFingerprint })
        const next = won(await store.claim(asked))
        assert.deepEqual([next.from, next.attempt, next.crashes], ['expired', 1, 0])
        assert.deepEqual(next.journal, { work: otherWork, overdue: false, steps: [] })
        assert.deepEqual(await steps.readJournal(claim.id), { work: otherWork, overdue: false, steps: [] })
        assert.equal(await finishEffect(fixture, next.claim), 'written')
      }
    },
  },
  {
    name: 'keeps no input and no steps when work that is not phased begins over an expired row',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await finishEffect(fixture, claim)
      await fixture.store.complete(claim, answer(), retentionMs)
      await harness.advance(expiresInMs + hourMs)
      const plain = won(await fixture.store.claim(request('a')))
      assert.deepEqual([plain.from, plain.journal], ['expired', undefined])
      assert.equal(await fixture.steps.readJournal(claim.id), undefined)
    },
  },
  {
    name: 'sweeps dead phased work to unknown only over an open intent that may not be repeated',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store } = fixture
      const held = [await withIntent(fixture, 'no window'), await withIntent(fixture, 'window past', 2 * minuteMs)]
      const left = [await withIntent(fixture, 'repeatable', 24 * hourMs), await ownPhased(store, 'between steps')]
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      await harness.advance(leaseMs + minuteMs)
      const swept = await store.sweep({ limit: 10 })
      assert.deepEqual(swept.map(row => row.id).toSorted(), held.map(claim => claim.id).toSorted())
      for (const row of swept) assert.deepEqual([row.to, row.operation], ['unknown', 'payments.create'])
      for (const { id } of held) {
        const record = await recordOf(store, id)
        assert.deepEqual([record.state, record.crashes], ['unknown', 1])
        assert.equal(await firstStep(fixture.steps, id), 'open 0')
      }
      for (const { id } of left) {
        const record = await recordOf(store, id)
        assert.deepEqual([record.state, record.crashes], ['in_progress', 0])
      }
      assert.deepEqual(await store.sweep({ limit: 10 }), [])
      assert.deepEqual((await store.list({ limit: 10, state: 'unknown' })).records.length, 2)
    },
  },
  {
    name: 'sweeps one phased row alone when it is named',
    async run(harness) {
      const fixture = await openSteps(harness)
      const [claim, beside] = [await withIntent(fixture, 'a'), await withIntent(fixture, 'b')]
      const between = await ownPhased(fixture.store, 'c')
      await harness.advance(leaseMs + minuteMs)
      assert.deepEqual(await fixture.store.sweep({ limit: 10, id: between.id }), [])
      assert.equal((await fixture.store.sweep({ limit: 10, id: claim.id })).length, 1)
      await assertState(fixture.store, claim.id, 'unknown')
      await assertState(fixture.store, beside.id, 'in_progress')
    },
  },
  {
    name: 'lists as resumable exactly the phased rows that a claim would be granted',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store } = fixture
      assert.deepEqual(await resumableIds(store), [])
      await ownPhased(store, 'dead between steps')
      await withIntent(fixture, 'dead, repeatable', 24 * hourMs)
      await withIntent(fixture, 'dead, not repeatable')
      await own(store, 'dead, rerun', { recovery: 'rerun' })
      await harness.advance(leaseMs + minuteMs)
      await ownPhased(store, 'alive')
      await store.fail(await ownPhased(store, 'due'), retryNow)
      await store.fail(await ownPhased(store, 'due later'), { ...retryNow, dueInMs: 2 * hourMs })
      await store.fail(await own(store, 'guarded'), retryNow)
      await store.fail(await ownPhased(store, 'unknown'), notKnown)
      await store.park(await ownPhased(store, 'parked'), 'poison')
      await store.complete(await ownPhased(store, 'completed'), answer(), retentionMs)
      const released = await ownPhased(store, 'released')
      await store.release(released.id, released.claimId)
      await store.fail(await withIntent(fixture, 'settled'), notKnown)
      await store.settle(identity('settled').id, { kind: 'never-happened' }, act, retentionMs)
      await store.park(await ownPhased(store, 'unparked'), 'poison')
      await store.unpark(identity('unparked').id, act)
      const expected = ['dead between steps', 'dead, repeatable', 'due', 'released', 'settled', 'unparked']
      assert.deepEqual(await resumableIds(store), idsOf(...expected))
      assert.deepEqual(await resumableIds(await harness.open()), idsOf(...expected), 'through another handle')
      for (const key of expected) won(await store.claim(resumeRequest(key)))
      assert.deepEqual(await resumableIds(store), [])
      await harness.advance(3 * hourMs)
      assert.deepEqual(await resumableIds(store), idsOf('alive', 'due later', ...expected))
    },
  },
  {
    name: 'lists no phased row as resumable that has expired',
    async run(harness) {
      const { store } = await openSteps(harness)
      await store.fail(await ownPhased(store, 'a'), retryNow)
      await harness.advance(expiresInMs + hourMs)
      assert.deepEqual(await store.resumable({ limit: 10 }), [])
      await store.reap({ limit: 10 })
      assert.deepEqual(await store.resumable({ limit: 10 }), [])
    },
  },
  {
    name: 'tells with each resumable row what a claim of it needs, and no more rows than asked for',
    async run(harness) {
      const { store } = await openSteps(harness)
      const asked = phasedRequest('a', { identity: identity('a', { scope: 'caf\u00e9', operation: 'orders.create' }) })
      won(await store.claim(asked))
      for (const key of ['b', 'c']) await store.fail(await ownPhased(store, key), retryNow)
      await harness.advance(leaseMs + minuteMs)
      assert.equal((await store.resumable({ limit: 2 })).length, 2)
      const rows = await store.resumable({ limit: 3 })
      const found = rows.find(row => row.identity.id === asked.identity.id)
      assert.deepEqual(found?.identity, asked.identity)
      assert.deepEqual(Buffer.from(found?.fingerprint ?? []), Buffer.from(asked.fingerprint))
      for (const { identity: each, fingerprint } of rows)
        won(await store.claim(resumeRequest('', { identity: each, fingerprint })))
    },
  },
  {
    name: 'grants dead phased work to one of many that ask at once',
    async run(harness) {
      const { store } = await openSteps(harness)
      const second = await harness.open()
      await ownPhased(store, 'a')
      await harness.advance(leaseMs + minuteMs)
      const asking = [store, second, store, second, store].map(each => each.claim(resumeRequest('a')))
      const results = await Promise.all(asking)
      assert.equal(results.filter(result => result.kind === 'won').length, 1)
    },
  },
]

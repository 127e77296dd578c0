/** The journal of phased work: what its owner writes, and that no other claim can. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, assertAbout, expiresInMs, hourMs, leaseMs, minuteMs, newClaimId } from '../fixture.ts'
import { own, recordOf, request, retentionMs, won } from '../fixture.ts'
import { charge, finishEffect, impostors, openSteps, ownPhased, phasedRequest, type StepsFixture } from './fixture.ts'
import { stepsOf, withIntent, work } from './fixture.ts'
import { assertRefused, losses, type OwnerCalls } from './refusals.ts'

/** Every call of a phased owner, on a row with an open intent at 0. */
const ownerCalls: OwnerCalls<StepsFixture> = {
  openIntent: ({ steps }, claim) => steps.openIntent(claim, charge(1, { name: 'refused' }), leaseMs),
  'openIntent again': ({ steps }, claim) => steps.openIntent(claim, charge(0, { windowMs: hourMs }), leaseMs),
  recordResult: ({ steps }, claim) => steps.recordResult(claim, { position: 0, value: '"refused"' }, leaseMs),
}

export const stepCases: readonly StoreCase[] = [
  {
    name: 'gives a fresh claim of phased work its journal: the input, and no step',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const first = won(await store.claim(phasedRequest('a')))
      assert.deepEqual(first.journal, { work, overdue: false, steps: [] })
      assert.deepEqual([first.from, first.attempt, first.crashes], ['none', 1, 0])
      assert.deepEqual(await steps.readJournal(first.claim.id), { work, overdue: false, steps: [] })
      const plain = won(await store.claim(request('b')))
      assert.equal(plain.journal, undefined)
      assert.equal(await steps.readJournal(plain.claim.id), undefined)
    },
  },
  {
    name: 'keeps every step as it was written, in order, and gives them back',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store, steps } = fixture
      const claim = await ownPhased(store, 'a')
      const odd = JSON.stringify({ text: '\0 \ud800 caf\u00e9 "', nested: [null, 1e21] })
      assert.equal(await finishEffect(fixture, claim, { position: 0, name: 'record', result: odd }), 'written')
      assert.equal(await steps.openIntent(claim, charge(1), leaseMs), 'written')
      assert.equal(await steps.recordResult(claim, { position: 1, value: undefined }, leaseMs), 'written')
      for (let position = 2; position < 12; position += 1)
        assert.equal(
          await finishEffect(fixture, claim, { position, name: 'n\u00e4chste', result: `${position}` }),
          'written',
        )
      assert.equal(await steps.openIntent(claim, charge(12, { epoch: 4, windowMs: hourMs }), leaseMs), 'written')
      const journal = await (await openSteps(harness)).steps.readJournal(claim.id)
      const done = { state: 'done', epoch: 0, repeatable: false }
      assert.deepEqual(journal, {
        work,
        overdue: false,
        steps: [
          { ...done, position: 0, name: 'record', kind: 'effect', value: odd },
          { ...done, position: 1, name: 'charge', kind: 'effect', value: undefined },
          ...Array.from({ length: 10 }, (_, at) => at + 2).map(position => ({
            ...done,
            ...{ position, name: 'n\u00e4chste', kind: 'effect', value: `${position}` },
          })),
          {
            ...{ position: 12, name: 'charge', kind: 'effect', state: 'open' },
            ...{ value: undefined, epoch: 4, repeatable: true },
          },
        ],
      })
    },
  },
  {
    name: 'refuses every step of who has another fence, another claim id or another row',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await withIntent(fixture, 'a')
      for (const impostor of impostors(claim))
        await assertRefused(fixture, ownerCalls, { claim: impostor, id: claim.id, why: 'an impostor' })
    },
  },
  {
    name: 'refuses every step of an owner whose row has left its hands',
    async run(harness) {
      const fixture = await openSteps(harness)
      for (const [loss, lose] of Object.entries(losses)) {
        const claim = await withIntent(fixture, loss)
        await lose(harness, fixture, claim)
        await assertRefused(fixture, ownerCalls, { claim, id: claim.id, why: loss })
      }
    },
  },
  {
    name: 'lets an overdue owner that nobody replaced go on, and renews its lease',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await ownPhased(fixture.store, 'a')
      const late = () => harness.advance(leaseMs + minuteMs)
      const leased = async () => assertAbout((await recordOf(fixture.store, claim.id)).leaseLeftMs, leaseMs)
      await late()
      assert.equal(await fixture.steps.openIntent(claim, charge(1), leaseMs), 'written')
      await leased()
      await late()
      assert.equal(await fixture.steps.recordResult(claim, { position: 1, value: '1' }, leaseMs), 'written')
      await leased()
    },
  },
  {
    name: 'keeps the steps of completed work until the row is reaped or forgotten, and then no longer',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store, steps } = fixture
      for (const key of ['reaped', 'forgotten']) {
        const claim = await ownPhased(store, key)
        await finishEffect(fixture, claim)
        await store.complete(claim, answer(), retentionMs)
        assert.equal((await stepsOf(steps, claim.id)).length, 1)
        if (key === 'forgotten') await store.forget(claim.id, act)
        else {
          await harness.advance(expiresInMs + hourMs)
          assert.equal(await store.reap({ limit: 10 }), 1)
        }
        assert.equal(await steps.readJournal(claim.id), undefined)
        const next = won(await store.claim(phasedRequest(key)))
        assert.deepEqual([next.from, next.journal?.steps], ['none', []])
      }
    },
  },
  {
    name: 'knows no journal of an identity that it has never seen',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      assert.equal(await steps.readJournal(newClaimId()), undefined)
      assert.equal(await steps.readJournal((await own(store, 'guarded')).id), undefined)
    },
  },
]

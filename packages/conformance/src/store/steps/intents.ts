/** The intents of effects: open until their result is recorded, or until it is known that nothing happened. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { act, hourMs, leaseMs, minuteMs, notKnown, recordOf, retentionMs, retryNow } from '../fixture.ts'
import { charge, finishEffect, firstStep, openSteps, ownPhased, stepsOf, withIntent } from './fixture.ts'

export const intentCases: readonly StoreCase[] = [
  {
    name: 'tells that an open intent may be repeated for as long as the provider recognises its key, by its own clock',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await withIntent(fixture, 'deduplicated', 3 * hourMs)
      const plain = await withIntent(fixture, 'not deduplicated')
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0 repeatable')
      assert.equal(await firstStep(fixture.steps, plain.id), 'open 0')
      await harness.advance(2 * hourMs)
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0 repeatable')
      await harness.advance(2 * hourMs)
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0')
    },
  },
  {
    name: 'counts the window of an intent that is opened again from its first try',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await withIntent(fixture, 'a', 3 * hourMs)
      await harness.advance(2 * hourMs)
      assert.equal(await fixture.steps.openIntent(claim, charge(0, { windowMs: 3 * hourMs }), leaseMs), 'written')
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0 repeatable')
      await harness.advance(2 * hourMs)
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0')
    },
  },
  {
    name: 'counts the window anew when what is known not to have happened is tried again',
    async run(harness) {
      const fixture = await openSteps(harness)
      await fixture.store.fail(await withIntent(fixture, 'a', 3 * hourMs), retryNow)
      await harness.advance(2 * hourMs)
      const next = await ownPhased(fixture.store, 'a')
      assert.equal(await fixture.steps.openIntent(next, charge(0, { windowMs: 3 * hourMs }), leaseMs), 'written')
      await harness.advance(2 * hourMs)
      assert.equal(await firstStep(fixture.steps, next.id), 'open 0 repeatable')
    },
  },
  {
    name: 'records a result once, says written again after a lost reply, and keeps the first',
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const claim = await ownPhased(store, 'a')
      assert.equal(await steps.recordResult(claim, { position: 0, value: '1' }, leaseMs), 'claim-lost')
      await steps.openIntent(claim, charge(0, { windowMs: hourMs }), leaseMs)
      for (const result of ['1', '2'])
        assert.equal(await steps.recordResult(claim, { position: 0, value: result }, leaseMs), 'written')
      const [step] = await stepsOf(steps, claim.id)
      assert.deepEqual([step?.state, step?.value, step?.repeatable], ['done', '1', false])
    },
  },
  {
    name: 'never opens a step again that is done',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await withIntent(fixture, 'a')
      await fixture.steps.recordResult(claim, { position: 0, value: '1' }, leaseMs)
      assert.equal(await fixture.steps.openIntent(claim, charge(0), leaseMs), 'claim-lost')
      assert.equal(await firstStep(fixture.steps, claim.id), 'done 0')
    },
  },
  {
    name: 'turns an open intent to again, in the same epoch, when its owner proves that nothing happened',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await finishEffect(fixture, claim)
      await fixture.steps.openIntent(claim, charge(1, { epoch: 2, windowMs: hourMs }), leaseMs)
      const beside = await withIntent(fixture, 'beside')
      assert.equal(await fixture.store.fail(claim, retryNow), 'written')
      const states = (await stepsOf(fixture.steps, claim.id)).map(step => [step.state, step.epoch, step.repeatable])
      assert.deepEqual(states, [
        ['done', 0, false],
        ['again', 2, false],
      ])
      assert.equal(await firstStep(fixture.steps, beside.id), 'open 0')
    },
  },
  {
    name: 'leaves an open intent open when its owner does not know, or lets the row go',
    async run(harness) {
      const fixture = await openSteps(harness)
      const unknown = await withIntent(fixture, 'unknown')
      await fixture.store.fail(unknown, notKnown)
      assert.equal(await firstStep(fixture.steps, unknown.id), 'open 0')
      const released = await withIntent(fixture, 'released')
      await fixture.store.release(released.id, released.claimId)
      assert.equal(await firstStep(fixture.steps, released.id), 'open 0')
    },
  },
  {
    name: 'turns an open intent to again when the late owner of an unknown row proves that nothing happened',
    async run(harness) {
      const fixture = await openSteps(harness)
      const claim = await withIntent(fixture, 'a')
      await harness.advance(leaseMs + minuteMs)
      assert.equal((await fixture.store.sweep({ limit: 10 })).length, 1)
      assert.equal(await fixture.store.fail(claim, retryNow), 'written')
      assert.equal(await firstStep(fixture.steps, claim.id), 'again 0')
    },
  },
  {
    name: 'turns an open intent to again in the next epoch when a person says it never happened, and the fence stays',
    async run(harness) {
      const fixture = await openSteps(harness)
      for (const expectedEpoch of [1, 2]) {
        const claim = await ownPhased(fixture.store, 'a')
        await fixture.steps.openIntent(claim, charge(0, { epoch: expectedEpoch - 1, windowMs: hourMs }), leaseMs)
        await fixture.store.fail(claim, notKnown)
        assert.deepEqual(await fixture.store.settle(claim.id, { kind: 'never-happened' }, act, retentionMs), {
          kind: 'settled',
        })
        assert.equal(await firstStep(fixture.steps, claim.id), `again ${expectedEpoch}`)
        assert.equal((await recordOf(fixture.store, claim.id)).fence, claim.fence)
      }
    },
  },
]

/** Phases: the writes of the application, the step and the renewed lease commit together, or not at all. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { OwnerResult } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answersAtOnceMs } from '../atomic/fixture.ts'
import { assertAbout, leaseMs, minuteMs, recordOf } from '../fixture.ts'
import { charge, finishEffect, firstStep, impostors, openPhased, ownPhased, type PhasedFixture } from './fixture.ts'
import { runPhase, stepsOf, withIntent, work } from './fixture.ts'
import { assertRefused, losses, type OwnerCalls } from './refusals.ts'

const phaseCalls: OwnerCalls<PhasedFixture> = {
  enterPhase: async ({ transactor, phases }, claim) => {
    let entered: OwnerResult = 'written'
    await transactor.transaction(async tx => {
      entered = await phases.enterPhase(tx, claim)
      return 'rollback'
    })
    return entered
  },
  recordPhase: async ({ transactor, phases, business }, claim) => {
    let recorded: OwnerResult = 'written'
    await transactor.transaction(async tx => {
      await phases.enterPhase(tx, claim)
      await business.insert(tx, 'refused')
      recorded = await phases.recordPhase(tx, claim, { position: 1, name: 'refused', value: '1' }, leaseMs)
      return recorded === 'written' ? 'commit' : 'rollback'
    })
    return recorded
  },
}

export const phaseCases: readonly StoreCase[] = [
  {
    name: 'commits business row, step and renewed lease of a phase together',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await harness.advance(leaseMs - minuteMs)
      await fixture.transactor.transaction(async tx => {
        assert.equal(await fixture.phases.enterPhase(tx, claim), 'written')
        await fixture.business.insert(tx, 'payment 7')
        assert.equal(
          await fixture.phases.recordPhase(tx, claim, { position: 0, name: 'record', value: '7' }, 2 * leaseMs),
          'written',
        )
        return 'commit'
      })
      assert.deepEqual(await fixture.business.values(), ['payment 7'])
      assert.equal((await stepsOf(fixture.steps, claim.id)).length, 1)
      const record = await recordOf(fixture.store, claim.id)
      assert.deepEqual([record.state, record.fence, record.claimId], ['in_progress', claim.fence, claim.claimId])
      assertAbout(record.leaseLeftMs, 2 * leaseMs)
    },
  },
  {
    name: 'leaves no step, no business row and the old lease when a phase rolls back',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await runPhase(fixture, claim, { end: 'rollback', leaseMs: 9 * leaseMs })
      assert.deepEqual(await stepsOf(fixture.steps, claim.id), [])
      assert.deepEqual(await fixture.business.values(), [])
      assertAbout((await recordOf(fixture.store, claim.id)).leaseLeftMs, leaseMs)
      assert.equal(await runPhase(fixture, claim), 'written')
    },
  },
  {
    name: 'never remembers two phases at one position',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      assert.equal(await runPhase(fixture, claim, { value: 'once', result: '1' }), 'written')
      assert.equal(await runPhase(fixture, claim, { value: 'twice', result: '2' }), 'claim-lost')
      assert.deepEqual(await fixture.business.values(), ['once'])
      const [step] = await stepsOf(fixture.steps, claim.id)
      assert.equal(step?.value, '1')
    },
  },
  {
    name: 'lets a phase wait for the transaction of the same identity, and then enter',
    async run(harness) {
      const fixture = await openPhased(harness)
      const second = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      const ended: string[] = []
      let waiting: Promise<unknown> | undefined
      await fixture.transactor.transaction(async tx => {
        assert.equal(await fixture.phases.enterPhase(tx, claim), 'written')
        waiting = runPhase(second, claim).then(result => ended.push(`second ${result}`))
        await pause(answersAtOnceMs)
        await fixture.business.insert(tx, 'first')
        await fixture.phases.recordPhase(tx, claim, { position: 1, name: 'first', value: undefined }, leaseMs)
        ended.push('first')
        return 'commit'
      })
      await waiting
      assert.deepEqual(ended, ['first', 'second written'])
    },
  },
  {
    name: 'refuses the phase of an owner that was replaced while it worked',
    async run(harness) {
      const fixture = await openPhased(harness)
      const stale = await ownPhased(fixture.store, 'a')
      await harness.advance(leaseMs + minuteMs)
      const next = await ownPhased(fixture.store, 'a')
      assert.equal(await runPhase(fixture, stale, { value: 'stale' }), 'claim-lost')
      assert.equal(await runPhase(fixture, next, { value: 'next' }), 'written')
      assert.equal(await fixture.steps.openIntent(stale, charge(1), leaseMs), 'claim-lost')
      assert.deepEqual(await fixture.business.values(), ['next'])
    },
  },
  {
    name: 'keeps a phase as it was written, between effects, and gives it back',
    async run(harness) {
      const fixture = await openPhased(harness)
      const { store, steps } = fixture
      const claim = await ownPhased(store, 'a')
      const odd = JSON.stringify({ text: '\0 \ud800 caf\u00e9 "', nested: [null, 1e21] })
      assert.equal(await runPhase(fixture, claim, { position: 0, name: 'n\u00e4chste', result: odd }), 'written')
      assert.equal(await steps.openIntent(claim, charge(1), leaseMs), 'written')
      assert.equal(await steps.recordResult(claim, { position: 1, value: undefined }, leaseMs), 'written')
      assert.equal(await runPhase(fixture, claim, { position: 2, name: 'last', result: undefined }), 'written')
      const journal = await (await openPhased(harness)).steps.readJournal(claim.id)
      const done = { state: 'done', epoch: 0, repeatable: false }
      assert.deepEqual(journal, {
        work,
        overdue: false,
        steps: [
          { ...done, position: 0, name: 'n\u00e4chste', kind: 'phase', value: odd },
          { ...done, position: 1, name: 'charge', kind: 'effect', value: undefined },
          { ...done, position: 2, name: 'last', kind: 'phase', value: undefined },
        ],
      })
    },
  },
  {
    name: 'never remembers a phase where an effect is done',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await finishEffect(fixture, claim, { position: 0, result: '1' })
      assert.equal(await runPhase(fixture, claim, { position: 0 }), 'claim-lost')
      assert.equal(await firstStep(fixture.steps, claim.id), 'done 0')
      assert.deepEqual(await fixture.business.values(), [])
    },
  },
  {
    name: 'lets the phase of an overdue owner that nobody replaced commit, and renews its lease',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      await harness.advance(leaseMs + minuteMs)
      assert.equal(await runPhase(fixture, claim), 'written')
      assertAbout((await recordOf(fixture.store, claim.id)).leaseLeftMs, leaseMs)
    },
  },
  {
    name: 'refuses every phase of who has another fence, another claim id or another row',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await withIntent(fixture, 'a')
      for (const impostor of impostors(claim))
        await assertRefused(fixture, phaseCalls, { claim: impostor, id: claim.id, why: 'an impostor' })
      assert.deepEqual(await fixture.business.values(), [])
    },
  },
  {
    name: 'refuses every phase of an owner whose row has left its hands',
    async run(harness) {
      const fixture = await openPhased(harness)
      for (const [loss, lose] of Object.entries(losses)) {
        const claim = await withIntent(fixture, loss)
        await lose(harness, fixture, claim)
        await assertRefused(fixture, phaseCalls, { claim, id: claim.id, why: loss })
      }
      assert.deepEqual(await fixture.business.values(), [])
    },
  },
]

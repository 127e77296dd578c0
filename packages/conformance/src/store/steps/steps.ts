/** The journal of phased work: what its owner writes, and that no other claim can. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Claim, OwnerResult } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { answersAtOnceMs } from '../atomic/fixture.ts'
import { act, answer, assertAbout, expiresInMs, hourMs, leaseMs, minuteMs, newClaimId } from '../fixture.ts'
import { notKnown, own, recordOf, request, retentionMs, retryNow, still, won } from '../fixture.ts'
import { charge, impostors, openPhased, ownPhased, phasedRequest, type PhasedFixture } from './fixture.ts'
import { runPhase, stepsOf, withIntent, work } from './fixture.ts'

/** Every call of a phased owner, on a row with an open intent at 0. */
const ownerCalls: Record<string, (fixture: PhasedFixture, claim: Claim) => Promise<OwnerResult>> = {
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
  openIntent: ({ steps }, claim) => steps.openIntent(claim, charge(1, { name: 'refused' }), leaseMs),
  'openIntent again': ({ steps }, claim) => steps.openIntent(claim, charge(0, { windowMs: hourMs }), leaseMs),
  recordResult: ({ steps }, claim) => steps.recordResult(claim, { position: 0, value: '"refused"' }, leaseMs),
}

/** How an owner loses the right to write. */
const losses: Record<string, (harness: StoreHarness, fixture: PhasedFixture, claim: Claim) => Promise<unknown>> = {
  failed: (_harness, { store }, claim) => store.fail(claim, retryNow),
  unknown: (_harness, { store }, claim) => store.fail(claim, notKnown),
  completed: (_harness, { store }, claim) => store.complete(claim, answer(), retentionMs),
  parked: (_harness, { store }, claim) => store.park(claim, 'poison'),
  released: (_harness, { store }, claim) => store.release(claim.id, claim.claimId),
  swept: async (harness, { store }) => {
    await harness.advance(leaseMs + minuteMs)
    return store.sweep({ limit: 10 })
  },
}

async function assertRefused(fixture: PhasedFixture, claim: Claim, id: string, why: string): Promise<void> {
  const before = still(await recordOf(fixture.store, id))
  const steps = await stepsOf(fixture.steps, id)
  for (const [call, write] of Object.entries(ownerCalls)) {
    assert.equal(await write(fixture, claim), 'claim-lost', `${call} of an owner that is ${why}`)
    assert.deepEqual(still(await recordOf(fixture.store, id)), before, `${call} of an owner that is ${why}`)
    assert.deepEqual(await stepsOf(fixture.steps, id), steps, `${call} of an owner that is ${why}`)
  }
  assert.deepEqual(await fixture.business.values(), [])
}

const cases: readonly Omit<StoreCase, 'needs'>[] = [
  {
    name: 'gives a fresh claim of phased work its journal: the input, and no step',
    async run(harness) {
      const { store, steps } = await openPhased(harness)
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
      const fixture = await openPhased(harness)
      const { store, steps } = fixture
      const claim = await ownPhased(store, 'a')
      const odd = JSON.stringify({ text: '\0 \ud800 caf\u00e9 "', nested: [null, 1e21] })
      assert.equal(await runPhase(fixture, claim, { position: 0, name: 'record', result: odd }), 'written')
      assert.equal(await steps.openIntent(claim, charge(1), leaseMs), 'written')
      assert.equal(await steps.recordResult(claim, { position: 1, value: undefined }, leaseMs), 'written')
      for (let position = 2; position < 12; position += 1)
        assert.equal(
          await runPhase(fixture, claim, { position, name: 'n\u00e4chste', result: `${position}` }),
          'written',
        )
      assert.equal(await steps.openIntent(claim, charge(12, { epoch: 4, windowMs: hourMs }), leaseMs), 'written')
      const journal = await (await openPhased(harness)).steps.readJournal(claim.id)
      const done = { state: 'done', epoch: 0, repeatable: false }
      assert.deepEqual(journal, {
        work,
        overdue: false,
        steps: [
          { ...done, position: 0, name: 'record', kind: 'phase', value: odd },
          { ...done, position: 1, name: 'charge', kind: 'effect', value: undefined },
          ...Array.from({ length: 10 }, (_, at) => at + 2).map(position => ({
            ...done,
            ...{ position, name: 'n\u00e4chste', kind: 'phase', value: `${position}` },
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
    name: 'refuses every step of who has another fence, another claim id or another row',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await withIntent(fixture, 'a')
      for (const impostor of impostors(claim)) await assertRefused(fixture, impostor, claim.id, 'an impostor')
    },
  },
  {
    name: 'refuses every step of an owner whose row has left its hands',
    async run(harness) {
      const fixture = await openPhased(harness)
      for (const [loss, lose] of Object.entries(losses)) {
        const claim = await withIntent(fixture, loss)
        await lose(harness, fixture, claim)
        await assertRefused(fixture, claim, claim.id, loss)
      }
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
    name: 'lets an overdue owner that nobody replaced go on, and renews its lease',
    async run(harness) {
      const fixture = await openPhased(harness)
      const claim = await ownPhased(fixture.store, 'a')
      const late = () => harness.advance(leaseMs + minuteMs)
      const leased = async () => assertAbout((await recordOf(fixture.store, claim.id)).leaseLeftMs, leaseMs)
      await late()
      assert.equal(await runPhase(fixture, claim), 'written')
      await leased()
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
      const fixture = await openPhased(harness)
      const { store, steps } = fixture
      for (const key of ['reaped', 'forgotten']) {
        const claim = await ownPhased(store, key)
        await runPhase(fixture, claim)
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
      const { store, steps } = await openPhased(harness)
      assert.equal(await steps.readJournal(newClaimId()), undefined)
      assert.equal(await steps.readJournal((await own(store, 'guarded')).id), undefined)
    },
  },
]

export const stepCases: readonly StoreCase[] = [
  {
    name: 'keeps steps and an outbox exactly when it says that it is transactional',
    async run(harness) {
      const store = await harness.open()
      assert.equal(store.steps !== undefined, store.traits.transactional)
      assert.equal(store.outbox !== undefined, store.traits.transactional)
    },
  },
  ...cases.map(each => ({ ...each, needs: 'transactional' as const })),
]

/** Phased work is settled at its open effect and resumes from there. */
import assert from 'node:assert/strict'
import type { FoundVerdict } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answer, assertNextFence, assertState, hourMs, identity, leaseMs, minuteMs, notKnown } from '../fixture.ts'
import { plain, recordOf, retentionMs, retryNow, still, won } from '../fixture.ts'
import { applying, charged, chargeOf, evidenceOf, finding, givenUp, happened, storeEvidence, never } from './fixture.ts'
import { quarantineMs, presentEvidence, unknownAgain, unknownBetweenSteps, unknownCharge, whole } from './fixture.ts'
import { openDoubt, openReconciling } from './fixture.ts'
import { charge, downstreamKey, finishEffect, firstStep, ownPhased, resumeRequest } from '../steps/fixture.ts'
import { stepsOf, withIntent } from '../steps/fixture.ts'

const refused = { kind: 'declined', value: '{"declined":"no funds"}' } as const
const noValue = { kind: 'happened', value: undefined } as const

export const settlingEffectCases: readonly StoreCase[] = [
  {
    name: 'records the result that evidence tells of the open effect, and the row waits for who goes on with it',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store, steps } = fixture
      for (const [key, verdict] of [
        ['happened', charged],
        ['declined', refused],
        ['no value', noValue],
      ] as const) {
        const claim = await ownPhased(store, key)
        await finishEffect(fixture, claim, { result: '7' })
        await steps.openIntent(claim, charge(1, { key: downstreamKey(key) }), leaseMs)
        await store.fail(claim, notKnown)
        const evidenceId = await storeEvidence(store, chargeOf(claim, { position: 1 }), finding(verdict))
        assert.deepEqual(await store.reconciliation.apply(evidenceId, applying), { kind: 'settled', to: 'pending' })
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.state, record.fence, record.claimId], ['pending', claim.fence, claim.claimId])
        assert.deepEqual([record.attempts, record.outcome, record.expired], [1, undefined, false])
        assert.deepEqual(await evidenceOf(store, claim.id), [`ledger: ${verdict.kind} (charge), applied`])
        const next = won(await store.claim(resumeRequest(key)))
        assert.deepEqual([next.from, next.attempt, next.crashes], ['pending', 2, 0])
        assertNextFence(store, claim.fence, next.claim.fence)
        assert.deepEqual(
          next.journal?.steps?.map(step => [step.name, step.state, step.value, step.epoch]),
          [
            ['record', 'done', '7', 0],
            ['charge', 'done', verdict.value, 0],
          ],
        )
        assert.equal(await finishEffect(fixture, next.claim, { position: 2, name: 'receipt' }), 'written')
        assert.equal(await store.complete(next.claim, answer(), retentionMs), 'written')
      }
    },
  },
  {
    name: 'raises the epoch of the open effect by one, once, when it never happened, and the fence stays',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store, steps } = fixture
      const claim = await unknownCharge(fixture, 'a')
      await harness.advance(quarantineMs + hourMs)
      const evidenceId = await storeEvidence(store, chargeOf(claim), finding(never))
      const second = await storeEvidence(store, chargeOf(claim), finding(never))
      assert.deepEqual(await store.reconciliation.apply(evidenceId, applying), { kind: 'settled', to: 'pending' })
      assert.equal((await store.reconciliation.apply(evidenceId, applying)).kind, 'applied-before')
      assert.equal((await store.reconciliation.apply(second, applying)).kind, 'not-applicable')
      assert.equal(await firstStep(steps, claim.id), 'again 1')
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.fence], ['pending', claim.fence])
      const next = await unknownAgain(fixture, 'a', 1)
      assertNextFence(store, claim.fence, next.fence)
      await harness.advance(quarantineMs + hourMs)
      assert.equal((await store.reconciliation.apply(second, applying)).kind, 'not-applicable')
      assert.equal(await firstStep(steps, claim.id), 'open 1')
      assert.equal(await presentEvidence(store, chargeOf(next, { epoch: 1 }), never), 'settled')
      assert.equal(await firstStep(steps, claim.id), 'again 2')
    },
  },
  {
    name: 'raises no epoch inside the quarantine',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const claim = await unknownCharge(fixture, 'a')
      await harness.advance(hourMs)
      assert.equal(await presentEvidence(fixture.store, chargeOf(claim), never), 'too-early')
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 0')
      await assertState(fixture.store, claim.id, 'unknown')
    },
  },
  {
    name: 'raises one epoch when two pieces of evidence say at the same moment that it never happened',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const second = await openReconciling(harness)
      const claim = await unknownCharge(fixture, 'a')
      await harness.advance(quarantineMs + hourMs)
      const ids = [
        await storeEvidence(second, chargeOf(claim), finding(never)),
        await storeEvidence(second, chargeOf(claim), finding(never)),
      ]
      const asked = ids.flatMap(id =>
        [fixture.store, second].map(({ reconciliation }) => reconciliation.apply(id, applying)),
      )
      const results = await Promise.all(asked)
      assert.equal(results.filter(result => result.kind === 'settled').length, 1)
      assert.equal(await firstStep(fixture.steps, claim.id), 'again 1')
    },
  },
  {
    name: 'applies nothing that is about another effect, another epoch, or the whole, while an effect is open',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store, steps } = fixture
      const claim = await ownPhased(store, 'a')
      await steps.openIntent(claim, charge(0), leaseMs)
      await steps.recordResult(claim, { position: 0, value: '1' }, leaseMs)
      await steps.openIntent(claim, charge(1, { epoch: 2, name: 'capture' }), leaseMs)
      await store.fail(claim, notKnown)
      await harness.advance(quarantineMs + hourMs)
      const before = [still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)]
      const capture = (over: object) => chargeOf(claim, { position: 1, name: 'capture', epoch: 2, ...over })
      for (const [subject, verdict] of [
        [chargeOf(claim), charged],
        [chargeOf(claim), never],
        [capture({ epoch: 1 }), charged],
        [capture({ epoch: 3 }), charged],
        [capture({ epoch: 1 }), never],
        [capture({ position: 2 }), charged],
        [capture({}), happened],
        [whole(claim), happened],
        [whole(claim), charged],
        [whole(claim), never],
      ] as const) {
        const evidenceId = await storeEvidence(store, subject, finding(verdict))
        const applied = await store.reconciliation.apply(evidenceId, applying)
        assert.deepEqual(applied, { kind: 'not-applicable', state: 'unknown' }, JSON.stringify([subject, verdict]))
        assert.deepEqual([still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)], before)
      }
      assert.deepEqual(await store.reconciliation.waiting({ limit: 10 }), [])
      assert.equal(await presentEvidence(store, capture({}), charged), 'settled')
    },
  },
  {
    name: 'applies no evidence about an epoch to the next one, whenever it was kept',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const claim = await unknownCharge(fixture, 'a')
      await harness.advance(quarantineMs + hourMs)
      assert.equal(await presentEvidence(store, chargeOf(claim), never), 'settled')
      const between = await storeEvidence(store, chargeOf(claim), finding(charged))
      assert.deepEqual(await store.reconciliation.apply(between, applying), {
        kind: 'not-applicable',
        state: 'pending',
      })
      await unknownAgain(fixture, 'a', 1)
      const after = await storeEvidence(store, chargeOf(claim), finding(charged))
      for (const evidenceId of [between, after])
        assert.equal((await store.reconciliation.apply(evidenceId, applying)).kind, 'not-applicable')
      assert.deepEqual(await store.reconciliation.waiting({ limit: 10 }), [])
      assert.equal(await firstStep(fixture.steps, claim.id), 'open 1')
    },
  },
  {
    name: 'settles phased work without an open effect by an outcome, or lets it go on if nothing happened',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      for (const [verdict, to] of [
        [happened, 'completed'],
        [never, 'pending'],
      ] as const) {
        const claim = await unknownBetweenSteps(fixture, to)
        await harness.advance(quarantineMs + hourMs)
        assert.equal(await presentEvidence(store, whole(claim), charged), 'not-applicable')
        assert.equal(await presentEvidence(store, chargeOf(claim), charged), 'not-applicable')
        assert.equal(await presentEvidence(store, chargeOf(claim), never), 'not-applicable')
        const evidenceId = await storeEvidence(store, whole(claim), finding(verdict))
        assert.deepEqual(await store.reconciliation.apply(evidenceId, applying), { kind: 'settled', to })
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.state, record.fence], [to, claim.fence])
        if (to === 'completed') assert.deepEqual(record.outcome && plain(record.outcome), plain(happened.outcome))
        else assert.equal(won(await store.claim(resumeRequest(to))).from, 'pending')
      }
    },
  },
  {
    name: 'lists what evidence settled as resumable at once, also what was parked',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const parked = await unknownCharge(fixture, 'parked')
      await givenUp(store)
      const plainOne = await unknownCharge(fixture, 'plain')
      assert.deepEqual(await store.resumable({ limit: 10 }), [])
      for (const claim of [parked, plainOne]) {
        assert.equal(await presentEvidence(store, chargeOf(claim), charged), 'settled')
        assert.equal((await recordOf(store, claim.id)).parked, false)
      }
      const found = (await store.resumable({ limit: 10 })).map(row => row.identity.id).toSorted()
      assert.deepEqual(found, [parked.id, plainOne.id].toSorted())
    },
  },
  {
    name: 'refuses every word of the late owner after its effect was settled',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store, steps } = fixture
      for (const verdict of [charged, never]) {
        const claim = await unknownCharge(fixture, verdict.kind)
        await harness.advance(quarantineMs + hourMs)
        assert.equal(await presentEvidence(store, chargeOf(claim), verdict), 'settled')
        const before = [still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)]
        assert.equal(await steps.recordResult(claim, { position: 0, value: '"late"' }, leaseMs), 'claim-lost')
        assert.equal(await steps.openIntent(claim, charge(0), leaseMs), 'claim-lost')
        assert.equal(await store.complete(claim, answer('late'), retentionMs), 'claim-lost')
        assert.equal(await store.fail(claim, retryNow), 'claim-lost')
        assert.equal(await store.release(claim.id, claim.claimId), 'not-yours')
        assert.equal(await store.park(claim, 'poison'), 'claim-lost')
        assert.deepEqual([still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)], before)
      }
    },
  },
  {
    name: 'lets phased work go on, in the same epoch, whose late owner proves that nothing happened',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const swept = await withIntent(fixture, 'swept')
      await harness.advance(leaseMs + minuteMs)
      assert.equal((await store.sweep({ limit: 10 })).length, 1)
      const failed = await unknownCharge(fixture, 'failed')
      for (const claim of [swept, failed]) {
        assert.equal(await store.fail(claim, retryNow), 'written')
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.state, record.fence, record.claimId], ['pending', claim.fence, claim.claimId])
        assert.equal(await firstStep(fixture.steps, claim.id), 'again 0')
        assert.deepEqual(await evidenceOf(store, claim.id), ['late-owner: never-happened, applied'])
      }
      assert.equal(won(await store.claim(resumeRequest('swept'))).from, 'pending')
    },
  },
  {
    name: 'takes no answer for the whole from a late owner while an effect is open, and keeps it as evidence',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store, steps } = fixture
      const swept = await withIntent(fixture, 'swept')
      await harness.advance(leaseMs + minuteMs)
      assert.equal((await store.sweep({ limit: 10 })).length, 1)
      for (const claim of [swept, await unknownCharge(fixture, 'failed')]) {
        const before = [still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)]
        assert.equal(await store.complete(claim, answer('late'), retentionMs), 'claim-lost')
        assert.deepEqual([still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)], before)
        assert.deepEqual(await evidenceOf(store, claim.id), ['late-owner: happened'])
        assert.deepEqual(await store.reconciliation.waiting({ limit: 10 }), [])
        assert.equal(await presentEvidence(store, chargeOf(claim), charged), 'settled')
      }
      const between = await unknownBetweenSteps(fixture, 'between')
      assert.equal(await store.complete(between, answer('late'), retentionMs), 'written')
      await assertState(store, between.id, 'completed')
    },
  },
  {
    name: 'settles an effect once when evidence contradicts at the same moment',
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      const second = await openReconciling(harness)
      for (let round = 0; round < 6; round += 1) {
        const claim = await unknownCharge(fixture, `round ${round}`)
        await harness.advance(quarantineMs + hourMs)
        const verdicts: readonly FoundVerdict[] = [charged, never]
        const ids = await Promise.all(verdicts.map(verdict => storeEvidence(store, chargeOf(claim), finding(verdict))))
        const asked = ids.map((id, turn) => (turn === 0 ? store : second).reconciliation.apply(id, applying))
        const kinds = (await Promise.all(asked)).map(result => result.kind)
        assert.deepEqual(kinds.toSorted(), ['not-applicable', 'settled'])
        assert.equal(await firstStep(fixture.steps, claim.id), kinds[0] === 'settled' ? 'done 0' : 'again 1')
        await assertState(store, identity(`round ${round}`).id, 'pending')
      }
    },
  },
]

/** An operator's verdict on phased work: about its open effect, or about the outcome where none is open. */
import assert from 'node:assert/strict'
import { needing, type StoreCase } from '../../store-harness.ts'
import { act, assertNextFence, expiresInMs, hourMs, plain, recordOf, request, retentionMs, rowIn } from '../fixture.ts'
import { still, won } from '../fixture.ts'
import { charged, declined, evidenceOf, givenUp, happened, never, unknownBetweenSteps } from './fixture.ts'
import { unknownCharge, openReconciling } from './fixture.ts'
import { firstStep, openSteps, resumeRequest, stepsOf } from '../steps/fixture.ts'

const refused = { kind: 'declined', value: '{"declined":"no funds"}' } as const

const phased: readonly StoreCase[] = [
  {
    name: "records the result of an open effect by a person's verdict, with evidence and audit, and the fence stays",
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store } = fixture
      for (const verdict of [charged, refused]) {
        const claim = await unknownCharge(fixture, verdict.kind)
        assert.deepEqual(await store.settle(claim.id, verdict, act, retentionMs), { kind: 'settled' })
        const { record, audit } = await store.inspect(claim.id)
        assert.deepEqual([record?.state, record?.fence, record?.outcome], ['pending', claim.fence, undefined])
        assert.deepEqual(
          audit.map(entry => [entry.by, entry.reason, entry.act]),
          [[act.by, act.reason, 'settle']],
        )
        assert.deepEqual(await evidenceOf(store, claim.id), [`operator: ${verdict.kind} (charge), applied`])
        const next = won(await store.claim(resumeRequest(verdict.kind)))
        assert.equal(next.from, 'pending')
        assertNextFence(store, claim.fence, next.claim.fence)
        const [step] = next.journal?.steps ?? []
        assert.deepEqual([step?.state, step?.value, step?.epoch], ['done', verdict.value, 0])
      }
    },
  },
  {
    name: 'raises the epoch of an open effect that a person says never happened, at once, and the row waits',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store } = fixture
      const claim = await unknownCharge(fixture, 'a')
      assert.deepEqual(await store.settle(claim.id, never, act, retentionMs), { kind: 'settled' })
      const record = await recordOf(store, claim.id)
      assert.deepEqual([record.state, record.fence], ['pending', claim.fence])
      assert.equal(await firstStep(fixture.steps, claim.id), 'again 1')
      assert.deepEqual(await evidenceOf(store, claim.id), ['operator: never-happened (charge), applied'])
      assert.deepEqual(await store.settle(claim.id, never, act, retentionMs), { kind: 'wrong-state', state: 'pending' })
      assert.equal(await firstStep(fixture.steps, claim.id), 'again 1')
    },
  },
  {
    name: 'refuses an outcome while an effect is open, and a result while none is, and changes nothing',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store, steps } = fixture
      const open = await unknownCharge(fixture, 'open')
      const between = await unknownBetweenSteps(fixture, 'between')
      for (const [claim, verdict, needs, effect] of [
        [open, happened, 'value', 'charge'],
        [open, declined, 'value', 'charge'],
        [between, charged, 'outcome', undefined],
        [between, refused, 'outcome', undefined],
      ] as const) {
        const before = [still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)]
        const result = await store.settle(claim.id, verdict, act, retentionMs)
        assert.deepEqual(result, { kind: 'wrong-verdict', needs, effect })
        assert.deepEqual([still(await recordOf(store, claim.id)), await stepsOf(steps, claim.id)], before)
        const { evidence, audit } = await store.inspect(claim.id)
        assert.deepEqual([evidence, audit], [[], []])
      }
    },
  },
  {
    name: 'settles phased work between its steps by an outcome, or lets it go on',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store } = fixture
      const done = await unknownBetweenSteps(fixture, 'done')
      assert.deepEqual(await store.settle(done.id, happened, act, retentionMs), { kind: 'settled' })
      const record = await recordOf(store, done.id)
      assert.equal(record.state, 'completed')
      assert.deepEqual(record.outcome && plain(record.outcome), plain(happened.outcome))
      const undone = await unknownBetweenSteps(fixture, 'undone')
      assert.deepEqual(await store.settle(undone.id, never, act, retentionMs), { kind: 'settled' })
      assert.equal(won(await store.claim(resumeRequest('undone'))).from, 'pending')
    },
  },
  {
    name: 'keeps settled phased work until somebody goes on with it, however long it was unknown',
    async run(harness) {
      const fixture = await openSteps(harness)
      const { store } = fixture
      const claim = await unknownCharge(fixture, 'a')
      await harness.advance(3 * expiresInMs)
      await store.settle(claim.id, charged, act, retentionMs)
      await harness.advance(3 * expiresInMs)
      assert.equal(await store.reap({ limit: 10 }), 0)
      assert.equal((await recordOf(store, claim.id)).expired, false)
      assert.equal((await store.resumable({ limit: 10 })).length, 1)
      const next = won(await store.claim(resumeRequest('a')))
      assert.deepEqual([next.from, next.journal?.steps?.[0]?.value], ['pending', charged.value])
    },
  },
]

export const verdictCases: readonly StoreCase[] = [
  {
    name: 'settles guarded work by an outcome that declines, and refuses the result of an effect',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      const before = still(await recordOf(store, claim.id))
      const wrong = await store.settle(claim.id, charged, act, retentionMs)
      assert.deepEqual(wrong, { kind: 'wrong-verdict', needs: 'outcome', effect: undefined })
      const { record, evidence, audit } = await store.inspect(claim.id)
      assert.deepEqual([record && still(record), evidence, audit], [before, [], []])
      assert.deepEqual(await store.settle(claim.id, declined, act, retentionMs), { kind: 'settled' })
      const { outcome } = await recordOf(store, claim.id)
      assert.deepEqual(outcome && plain(outcome), plain(declined.outcome))
      assert.deepEqual(await evidenceOf(store, claim.id), ['operator: declined, applied'])
    },
  },
  {
    name: "takes the parked mark from an unknown row by a person's verdict",
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      for (const verdict of [happened, never]) {
        const claim = await rowIn.unknown(harness, store, verdict.kind)
        await givenUp(store)
        assert.deepEqual(await store.settle(claim.id, verdict, act, retentionMs), { kind: 'settled' })
        assert.equal((await recordOf(store, claim.id)).parked, false)
      }
      assert.deepEqual((await store.list({ limit: 10, parked: true })).records, [])
      assert.equal(won(await store.claim(request('never-happened'))).from, 'failed_retryable')
      await harness.advance(expiresInMs + hourMs)
      assert.equal(await store.reap({ limit: 10 }), 1)
    },
  },
  ...needing(['steps'], phased),
]

/** The line of an atomic operation is in the commit of its business rows; phased work has one for each end. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { open, runAtomic } from '../atomic/fixture.ts'
import { act, answer, atomicRequest, hourMs, identity, minuteMs, retentionMs, retryNow } from '../fixture.ts'
import { charged, chargeOf, never, presentEvidence, reconciling, unknownCharge } from '../reconcile/fixture.ts'
import { openPhased, ownPhased, withIntent } from '../steps/fixture.ts'
import { linesOf, recordedCase, trailOf } from './fixture.ts'

const needs = ['transactions'] as const
const ofPhases = ['phases'] as const
const large = 'x'.repeat(100_000)

export const auditedTransactionCases: readonly StoreCase[] = [
  recordedCase({ name: 'records an atomic operation if it commits, and only then', needs }, async recorded => {
    const { harness, records } = recorded
    const fixture = await open(harness)
    assert.deepEqual(await runAtomic(fixture, 'a', 'rollback'), { kind: 'rolled-back' })
    assert.deepEqual(await linesOf(records), [])
    assert.deepEqual(await runAtomic(fixture, 'a'), { kind: 'committed' })
    assert.deepEqual(await runAtomic(fixture, 'a'), { kind: 'rolled-back' })
    assert.deepEqual(await trailOf(records, identity('a').id), ['completed 1 201'])
    assert.deepEqual(await fixture.business.values(), ['order for a'])
  }),
  recordedCase({ name: 'records an atomic answer of any size, and over an expired row', needs }, async recorded => {
    const { harness, records } = recorded
    const { transactor } = await open(harness)
    for (const [key, text] of Object.entries({ small: 'small', large })) {
      for (const [before, status] of [200, 402].entries()) {
        const asked = atomicRequest(key)
        await transactor.transaction(async tx => {
          const reserved = await transactor.reserve(tx, asked)
          assert.equal(reserved.kind, 'free')
          assert.equal(await transactor.record(tx, asked, answer(text, { status }), reserved.fence), 'recorded')
          return 'commit'
        })
        assert.equal((await trailOf(records, asked.identity.id)).at(-1), `completed ${before + 1} ${status}`)
        await harness.advance(retentionMs + hourMs)
      }
    }
  }),
  recordedCase({ name: 'records an atomic answer that is sent with the commit', needs }, async recorded => {
    const { harness, records } = recorded
    const { transactor } = await open(harness)
    const asked = atomicRequest('last')
    const end = await transactor.transaction(async tx => {
      const reserved = await transactor.reserve(tx, asked)
      assert.equal(reserved.kind, 'free')
      const recordLast = transactor.recordLast ?? transactor.record
      assert.equal(await recordLast.call(transactor, tx, asked, answer('last'), reserved.fence), 'recorded')
      return 'commit'
    }, asked)
    assert.deepEqual(end, { kind: 'committed' })
    assert.deepEqual(await trailOf(records, asked.identity.id), ['completed 1 201'])
  }),
  recordedCase({ name: 'records phased work at its ends, and not at its steps', needs: ofPhases }, async recorded => {
    const { harness, records } = recorded
    const fixture = await openPhased(harness)
    const { store, steps } = fixture
    const claim = await withIntent(fixture, 'a', hourMs)
    await steps.recordResult(claim, { position: 0, value: '1' }, minuteMs)
    assert.deepEqual(await linesOf(records), [])
    assert.equal(await store.complete(claim, answer(), retentionMs), 'written')
    assert.deepEqual(await trailOf(records, claim.id), ['completed 1 201'])
  }),
  recordedCase(
    {
      name: 'records that an effect in doubt was settled and the rest resumed, and how the rest ended',
      needs: [...ofPhases, 'reconciliation'],
    },
    async ({ harness, records }) => {
      const fixture = await openPhased(harness)
      const store = reconciling(fixture.store)
      const proven = await unknownCharge(fixture, 'proven')
      assert.equal(await presentEvidence(store, chargeOf(proven), charged), 'settled')
      const again = await ownPhased(store, 'proven')
      assert.equal(await store.complete(again, answer(), retentionMs), 'written')
      const ended = `completed ${again.fence} 201`
      assert.deepEqual(await trailOf(records, proven.id), ['unknown 1', 'resumed 1', ended])
      const told = await unknownCharge(fixture, 'told')
      await store.settle(told.id, never, act, retentionMs)
      assert.deepEqual(await trailOf(records, told.id), ['unknown 1', 'resumed 1'])
      const late = await unknownCharge(fixture, 'late')
      assert.equal(await store.fail(late, retryNow), 'written')
      assert.deepEqual(await trailOf(records, late.id), ['unknown 1', 'resumed 1'])
    },
  ),
]

/** Every end of an execution has one line, and nothing else has one. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import {
  act,
  answer,
  assertAbout,
  assertState,
  bytes,
  expiresInMs,
  hourMs,
  identity,
  leaseMs,
  minuteMs,
} from '../fixture.ts'
import {
  newClaimId,
  notKnown,
  otherFingerprint,
  own,
  request,
  retentionMs,
  retryNow,
  rowIn,
  sameBytes,
} from '../fixture.ts'
import { declined, happened, never, presentEvidence, quarantineMs, reconciling, whole } from '../reconcile/fixture.ts'
import { linesOf, recordedCase, trailOf } from './fixture.ts'

const large = 'x'.repeat(100_000)

export const auditedEndCases: readonly StoreCase[] = [
  recordedCase({ name: 'writes no line unless it is told to' }, async ({ harness, plain, records, store }) => {
    // The harness may open stores that were told.
    if (plain === store) return
    for (const end of ['completed', 'failed_retryable', 'unknown'] as const) await rowIn[end](harness, plain, end)
    assert.deepEqual(await linesOf(records), [])
    // What one began the other can end: they are one store.
    const claim = await own(plain, 'a')
    assert.equal(await store.complete(claim, answer(), retentionMs), 'written')
    assert.deepEqual(await trailOf(records, claim.id), ['completed 1 201'])
    assert.equal(records.recording(), store)
    assert.equal(store.auditRecords?.recording(), store)
  }),
  recordedCase(
    { name: 'says of an answer who asked for what, when, and how it ended, and never what it said' },
    async ({ records, store }) => {
      const asked = request('a', { description: 'a description' })
      const claimed = await store.claim(asked)
      assert.equal(claimed.kind, 'won')
      await store.complete(claimed.claim, answer('a secret', { status: 402 }), retentionMs)
      const [line, ...others] = await linesOf(records)
      assert.ok(line)
      assert.deepEqual(others, [])
      const { atMs, lineId, fingerprint, ...rest } = line
      const { id, scope, operation } = asked.identity
      assert.deepEqual(rest, { what: 'completed', scope, operation, id, fence: claimed.claim.fence, status: 402 })
      sameBytes(fingerprint, asked.fingerprint)
      assert.ok(lineId.length > 0)
      assertAbout(atMs, (await store.read(id))?.completedAtMs ?? 0)
    },
  ),
  recordedCase({ name: 'records an answer of any size with its status' }, async ({ records, store }) => {
    for (const [key, text] of Object.entries({ small: 'small', large })) {
      const claim = await own(store, key)
      assert.equal(await store.complete(claim, answer(text, { status: 299 }), retentionMs), 'written')
      assert.deepEqual(await trailOf(records, claim.id), ['completed 1 299'])
    }
  }),
  recordedCase(
    { name: 'records what failed, was parked, or is unknown, and each attempt by its fence' },
    async ({ records, store }) => {
      const claim = await own(store, 'a')
      await store.fail(claim, retryNow)
      const again = await own(store, 'a')
      await store.fail(again, notKnown)
      const [first = '', second = ''] = [claim.fence, again.fence].map(String)
      assert.deepEqual(await trailOf(records, claim.id), [`failed ${first}`, `unknown ${second}`])
      const parked = await own(store, 'b')
      await store.park(parked, 'poison')
      assert.deepEqual(await trailOf(records, parked.id), ['parked 1'])
    },
  ),
  recordedCase(
    { name: 'records nothing for a claim, a heartbeat, a stranger, or an answer that is repeated' },
    async ({ records, store }) => {
      const claim = await own(store, 'a')
      await store.heartbeat(claim, leaseMs)
      const stranger = { ...claim, claimId: newClaimId() }
      assert.equal(await store.complete(stranger, answer(), retentionMs), 'claim-lost')
      assert.equal(await store.fail(stranger, retryNow), 'claim-lost')
      assert.equal((await store.claim(request('a', { fingerprint: otherFingerprint }))).kind, 'seen')
      assert.deepEqual(await linesOf(records), [])
      for (let tries = 0; tries < 3; tries += 1) {
        assert.equal(await store.complete(claim, answer(), retentionMs), 'written')
      }
      assert.deepEqual(await trailOf(records, claim.id), ['completed 1 201'])
      const failed = await own(store, 'b')
      for (let tries = 0; tries < 3; tries += 1) assert.equal(await store.fail(failed, notKnown), 'written')
      assert.deepEqual(await trailOf(records, failed.id), ['unknown 1'])
    },
  ),
  recordedCase(
    { name: 'records of completions at one moment exactly those that were written' },
    async ({ records, store }) => {
      const keys = Array.from({ length: 40 }, (_, n) => `many ${n}`)
      const claims = await Promise.all(keys.map(key => own(store, key)))
      const answers = await Promise.all(
        claims.map((claim, n) =>
          store.complete(n % 8 === 3 ? { ...claim, claimId: newClaimId() } : claim, answer(`${n}`), retentionMs),
        ),
      )
      const written = claims.filter((_, n) => answers[n] === 'written').map(({ id }) => id)
      assert.equal(written.length, 35)
      const lines = await linesOf(records)
      assert.deepEqual(lines.map(({ id }) => id).toSorted(), written.toSorted())
      for (const { what, status } of lines) assert.deepEqual([what, status], ['completed', 201])
    },
  ),
  recordedCase({ name: 'records dead leases that are swept, and claims that are released' }, async recorded => {
    const { harness, records, store } = recorded
    const held = await rowIn['in_progress past its lease (hold)'](harness, store, 'held')
    const rerun = await rowIn['in_progress past its lease (rerun)'](harness, store, 'rerun')
    await store.sweep({ limit: 10 })
    assert.deepEqual(await trailOf(records, held.id), ['unknown 1'])
    assert.deepEqual(await trailOf(records, rerun.id), ['failed 1'])
    const one = await rowIn['in_progress past its lease (hold)'](harness, store, 'one')
    await store.sweep({ limit: 1, id: one.id })
    assert.deepEqual(await trailOf(records, one.id), ['unknown 1'])
    const undone = await own(store, 'undone')
    assert.equal(await store.release(undone.id, undone.claimId), 'released')
    assert.deepEqual(await trailOf(records, undone.id), ['failed 1'])
    const lost = await own(store, 'lost')
    await store.releaseMany([lost, one, held])
    assert.deepEqual(await trailOf(records, lost.id), ['failed 1'])
    assert.deepEqual(await trailOf(records, one.id), ['unknown 1', 'failed 1'])
    assert.deepEqual(await trailOf(records, held.id), ['unknown 1', 'failed 1'])
  }),
  ...settledCases(),
]

function settledCases(): readonly StoreCase[] {
  return [
    recordedCase(
      {
        name: 'records how an unknown row was settled: by its owner, by a person, by evidence',
        needs: ['reconciliation'],
      },
      async ({ harness, records, store: recording }) => {
        const store = reconciling(recording)
        const late = await rowIn.unknown(harness, store, 'late')
        assert.equal(await store.complete(late, answer('late', { status: 200 }), retentionMs), 'written')
        assert.deepEqual(await trailOf(records, late.id), ['unknown 1', 'completed 1 200'])
        const lateFailed = await rowIn.unknown(harness, store, 'late failed')
        assert.equal(await store.fail(lateFailed, retryNow), 'written')
        assert.deepEqual(await trailOf(records, lateFailed.id), ['unknown 1', 'failed 1'])
        const settled = await rowIn.unknown(harness, store, 'settled')
        await store.settle(settled.id, declined, act, retentionMs)
        assert.deepEqual(await trailOf(records, settled.id), ['unknown 1', 'completed 1 402'])
        const denied = await rowIn.unknown(harness, store, 'denied')
        await store.settle(denied.id, never, act, retentionMs)
        assert.deepEqual(await trailOf(records, denied.id), ['unknown 1', 'failed 1'])
        const proven = await rowIn.unknown(harness, store, 'proven')
        assert.equal(await presentEvidence(store, whole(proven), happened), 'settled')
        assert.deepEqual(await trailOf(records, proven.id), ['unknown 1', 'completed 1 201'])
        const refuted = await rowIn.unknown(harness, store, 'refuted')
        await harness.advance(quarantineMs + hourMs)
        assert.equal(await presentEvidence(store, whole(refuted), never), 'settled')
        assert.deepEqual(await trailOf(records, refuted.id), ['unknown 1', 'failed 1'])
      },
    ),
    recordedCase(
      { name: 'records the status of this answer over the row of an older one' },
      async ({ harness, records, store }) => {
        const first = await own(store, 'a')
        await store.complete(first, answer('first', { status: 200 }), 1)
        await harness.advance(expiresInMs + minuteMs)
        const second = await own(store, 'a')
        await store.fail(second, notKnown)
        await store.settle(second.id, declined, act, retentionMs)
        const expected = ['completed 1 200', `unknown ${second.fence}`, `completed ${second.fence} 402`]
        assert.deepEqual(await trailOf(records, second.id), expected)
      },
    ),
    recordedCase(
      { name: 'records a refused misuse with the refused fingerprint, beside the row' },
      async ({ records, store }) => {
        const claim = await own(store, 'a')
        await records.addMisuse({ identity: identity('a'), fingerprint: otherFingerprint })
        const [line] = await linesOf(records)
        assert.deepEqual([line?.what, line?.fence, line?.status], ['misuse', 1, undefined])
        sameBytes(line?.fingerprint, otherFingerprint)
        await records.addMisuse({ identity: identity('none'), fingerprint: bytes('v1') })
        assert.deepEqual(await trailOf(records, identity('none').id), ['misuse 0'])
        await assertState(store, claim.id, 'in_progress')
      },
    ),
  ]
}

/** Look-ups of unknown rows: when they are due, and which process gets them. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, assertAbout, hourMs, identity, leaseMs, minuteMs } from '../fixture.ts'
import { newClaimId, notKnown, own, recordOf, retentionMs, rowIn, still } from '../fixture.ts'
import { applying, charged, chargeOf, claimOf, evidenceOf, finding, happened, storeEvidence } from './fixture.ts'
import { openReconciling, openDoubt } from './fixture.ts'
import {
  lookUp,
  lookupLeaseMs,
  never,
  onlyLookup,
  presentEvidence,
  unknownBetweenSteps,
  unknownCharge,
  whole,
} from './fixture.ts'

export const lookupCases: readonly StoreCase[] = [
  {
    name: 'grants the look-up of an unknown row as long after it became unknown as is asked, and not before',
    async run(harness) {
      const store = await openReconciling(harness)
      const firstInMs = 2 * hourMs
      const claim = await own(store, 'a', { leaseMs: 9 * hourMs })
      await harness.advance(3 * hourMs)
      await store.fail(claim, notKnown)
      assert.deepEqual(await lookUp(store, { firstInMs }), [])
      await harness.advance(hourMs)
      assert.deepEqual(await lookUp(store, { firstInMs }), [])
      await harness.advance(hourMs + minuteMs)
      const before = still(await recordOf(store, claim.id))
      const lookup = await onlyLookup(store, firstInMs)
      const { unknownForMs, createdAtMs, look, ...rest } = lookup
      const expected = { id: claim.id, fence: claim.fence, identity: identity('a'), tries: 1, attempts: 1 }
      assert.deepEqual(rest, { ...expected, effect: undefined })
      assert.ok(Number.isSafeInteger(look))
      assertAbout(unknownForMs, 2 * hourMs + minuteMs)
      assertAbout(createdAtMs, (await recordOf(store, claim.id)).createdAtMs)
      assert.deepEqual(still(await recordOf(store, claim.id)), before)
      assert.deepEqual(await lookUp(store, { firstInMs }), [])
    },
  },
  {
    name: 'tells how long it is until the next look-up, once somebody has looked, and until the row is parked',
    async run(harness) {
      const store = await openReconciling(harness)
      const { reconciliation } = store
      const next = (id: string) => reconciliation.nextLookUpInMs(id)
      assert.equal(await next(identity('absent').id), undefined)
      const { id } = await rowIn.unknown(harness, store, 'a')
      assert.equal(await next(id), undefined, 'when the first one is due, the store does not know')
      const lookup = await onlyLookup(store)
      assertAbout((await next(id)) ?? 0, lookupLeaseMs)
      assert.equal(await reconciliation.postpone(lookup, 2 * hourMs), 'written')
      assertAbout((await next(id)) ?? 0, 2 * hourMs)
      await harness.advance(3 * hourMs)
      assertAbout((await next(id)) ?? 0, -hourMs)
      assert.equal(await reconciliation.giveUp(await onlyLookup(store), 'nobody knows'), 'written')
      assert.equal(await next(id), undefined)
      assert.deepEqual(await store.settle(id, { kind: 'never-happened' }, act, retentionMs), { kind: 'settled' })
      assert.equal(await next(id), undefined)
    },
  },
  {
    name: 'grants look-ups of rows that a sweeper found, too',
    async run(harness) {
      const store = await openReconciling(harness)
      const claim = await rowIn['in_progress past its lease (hold)'](harness, store, 'a')
      assert.deepEqual(await lookUp(store), [])
      await store.sweep({ limit: 10 })
      assert.deepEqual(await lookUp(store, { firstInMs: hourMs }), [])
      await harness.advance(hourMs + minuteMs)
      const lookup = await onlyLookup(store, hourMs)
      assert.deepEqual([lookup.id, lookup.fence, lookup.tries], [claim.id, claim.fence, 1])
    },
  },
  {
    name: 'grants look-ups of unknown rows only, of one operation only, and no more than asked',
    async run(harness) {
      const store = await openReconciling(harness)
      for (const state of ['in_progress', 'completed', 'failed_retryable'] as const)
        await rowIn[state](harness, store, state)
      const other = await own(store, 'other', { identity: identity('other', { operation: 'orders.create' }) })
      await store.fail(other, notKnown)
      const claims = []
      for (const key of ['a', 'b', 'c']) claims.push(await rowIn.unknown(harness, store, key))
      const [first, second] = [await lookUp(store, { limit: 2 }), await lookUp(store, { limit: 2 })]
      assert.deepEqual([first.length, second.length], [2, 1])
      const granted = [...first, ...second].map(lookup => lookup.id)
      assert.deepEqual(granted.toSorted(), claims.map(claim => claim.id).toSorted())
      const [orders] = await lookUp(store, { operation: 'orders.create' })
      assert.deepEqual(orders?.identity, identity('other', { operation: 'orders.create' }))
      assert.deepEqual(await lookUp(store, { operation: 'nobody.asks' }), [])
    },
  },
  {
    name: 'grants first what waits longest',
    async run(harness) {
      const store = await openReconciling(harness)
      const claims = []
      for (const key of ['first', 'second', 'third']) {
        claims.push(await rowIn.unknown(harness, store, key))
        await harness.advance(hourMs)
      }
      for (const claim of claims) {
        const [lookup] = await lookUp(store, { limit: 1 })
        assert.equal(lookup?.id, claim.id)
      }
    },
  },
  {
    name: 'grants a look-up to one of twenty who ask at once',
    async run(harness) {
      const stores = [await openReconciling(harness), await openReconciling(harness)]
      const [store] = stores
      assert.ok(store)
      await rowIn.unknown(harness, store, 'a')
      const asked = Array.from({ length: 10 }, () => stores.map(each => lookUp(each)))
      assert.equal((await Promise.all(asked.flat())).flat().length, 1)
    },
  },
  {
    name: 'grants each of many rows to one of several who ask at once',
    async run(harness) {
      const store = await openReconciling(harness)
      const second = await openReconciling(harness)
      const claims = []
      for (let row = 0; row < 12; row += 1) claims.push(await rowIn.unknown(harness, store, `row ${row}`))
      const granted: string[] = []
      // A process may skip rows that another one has locked, so all ask until none finds any.
      for (let turn = 0; turn < 20; turn += 1) {
        const found = await Promise.all([store, second, store].map(each => lookUp(each, { limit: 5 })))
        if (found.flat().length === 0) break
        granted.push(...found.flat().map(lookup => lookup.id))
      }
      assert.deepEqual(granted.toSorted(), claims.map(claim => claim.id).toSorted())
    },
  },
  {
    name: 'asks no more about a row that is settled, by whomever, and refuses who was asking',
    async run(harness) {
      const store = await openReconciling(harness)
      const settlers = {
        'a late owner': claim => store.complete(claim, answer(), retentionMs),
        'a person': claim => store.settle(claim.id, never, act, retentionMs),
        evidence: claim => presentEvidence(store, whole(claim), happened),
      } satisfies Record<string, (claim: Awaited<ReturnType<typeof own>>) => Promise<unknown>>
      for (const [who, settle] of Object.entries(settlers)) {
        const claim = await rowIn.unknown(harness, store, who)
        const lookup = await onlyLookup(store)
        await settle(claim)
        const before = still(await recordOf(store, claim.id))
        assert.equal(await store.reconciliation.postpone(claimOf(lookup), 0), 'claim-lost', who)
        assert.equal(await store.reconciliation.giveUp(claimOf(lookup), 'unresolved'), 'claim-lost', who)
        assert.deepEqual(still(await recordOf(store, claim.id)), before)
        await harness.advance(lookupLeaseMs + minuteMs)
        assert.deepEqual(await lookUp(store), [], who)
      }
    },
  },
  {
    name: 'tells which effect is in doubt, in which epoch, and of phased work between its steps that none is',
    needs: ['steps'],
    async run(harness) {
      const fixture = await openDoubt(harness)
      const { store } = fixture
      await unknownCharge(fixture, 'a')
      assert.deepEqual((await onlyLookup(store)).effect, { position: 0, name: 'charge', epoch: 0 })
      await unknownBetweenSteps(fixture, 'b')
      assert.equal((await onlyLookup(store)).effect, undefined)
      const claim = { id: identity('a').id }
      await store.settle(claim.id, never, act, retentionMs)
      const next = await own(store, 'a', { recovery: 'resume' })
      const again = { position: 0, name: 'charge', epoch: 1, key: newClaimId(), windowMs: undefined }
      await fixture.steps.openIntent(next, again, leaseMs)
      await store.fail(next, notKnown)
      const lookup = await onlyLookup(store)
      assert.deepEqual(lookup.effect, { position: 0, name: 'charge', epoch: 1 })
      assert.ok(lookup.effect)
      const evidenceId = await storeEvidence(store, { id: lookup.id, effect: lookup.effect }, finding(charged))
      const applied = await store.reconciliation.apply(evidenceId, { ...applying, lookup: claimOf(lookup) })
      assert.deepEqual(applied, { kind: 'settled', to: 'pending' })
      assert.deepEqual(await evidenceOf(store, claim.id), [
        'ledger: happened (charge), applied',
        'operator: never-happened (charge), applied',
      ])
      assert.equal(await presentEvidence(store, chargeOf(claim, { epoch: 1 }), charged), 'not-applicable')
    },
  },
]

/** Names that owners give their rows, and rows that are found by them. */
import assert from 'node:assert/strict'
import type { NewReference, References, Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import {
  act,
  answer,
  assertAbout,
  atomicRequest,
  expiresInMs,
  leaseMs,
  minuteMs,
  own,
  recordOf,
  retentionMs,
} from '../fixture.ts'

function referencesIn({ name, references }: Store): References<unknown> {
  assert.ok(references, `${name} says that it has references, and has none`)
  return references
}

function named(...texts: readonly string[]): readonly NewReference[] {
  return texts.map(index => ({ index, sealed: undefined }))
}

async function found(references: References<unknown>, text: string): Promise<readonly string[]> {
  return (await references.find(text, { limit: 10 })).map(({ id }) => id)
}

async function textsOf(references: References<unknown>, id: string): Promise<readonly string[]> {
  return (await references.of(id)).map(({ index }) => index)
}

export const referenceCases: readonly StoreCase[] = [
  {
    name: 'finds a row by each reference that its owner gave it, while it runs and after its end, and by no other text',
    async run(harness) {
      const store = await harness.open()
      const references = referencesIn(store)
      const claim = await own(store, 'named')
      assert.equal(await references.add(claim, named('ch_1')), 'written')
      assert.equal(await references.add(claim, named('order é/2', 'ch_1')), 'written')
      await store.complete(claim, answer(), retentionMs)
      for (const text of ['ch_1', 'order é/2']) assert.deepEqual(await found(references, text), [claim.id])
      for (const text of ['ch_', 'CH_1', 'ch_1 ', '%']) assert.deepEqual(await found(references, text), [])
      assert.deepEqual(await textsOf(references, claim.id), ['ch_1', 'order é/2'])
      const [first] = await references.of(claim.id)
      assertAbout(first?.atMs ?? 0, (await recordOf(store, claim.id)).createdAtMs)
    },
  },
  {
    name: 'finds every row that has the reference, at most as many as were asked for',
    async run(harness) {
      const store = await harness.open()
      const references = referencesIn(store)
      const ids: string[] = []
      for (const key of ['a', 'b', 'c']) {
        const claim = await own(store, key)
        await references.add(claim, named('order 7'))
        ids.push(claim.id)
      }
      assert.deepEqual((await found(references, 'order 7')).toSorted(), ids.toSorted())
      assert.equal((await references.find('order 7', { limit: 2 })).length, 2)
    },
  },
  {
    name: 'takes no reference from an owner that was replaced, or whose row has ended',
    async run(harness) {
      const store = await harness.open()
      const references = referencesIn(store)
      const late = await own(store, 'late', { recovery: 'rerun' })
      await harness.advance(leaseMs + minuteMs)
      const next = await own(store, 'late', { recovery: 'rerun' })
      assert.equal(await references.add(late, named('ch_late')), 'claim-lost')
      assert.equal(await references.add(next, named('ch_next')), 'written')
      await store.complete(next, answer(), retentionMs)
      assert.equal(await references.add(next, named('ch_after')), 'claim-lost')
      assert.deepEqual(await textsOf(references, late.id), ['ch_next'])
    },
  },
  {
    name: 'loses the references of a row with the row: forgotten, or reaped',
    async run(harness) {
      const store = await harness.open()
      const references = referencesIn(store)
      const forgotten = await own(store, 'forgotten')
      const reaped = await own(store, 'reaped')
      for (const claim of [forgotten, reaped]) {
        await references.add(claim, named(`of ${claim.id}`))
        await store.complete(claim, answer(), retentionMs)
      }
      assert.equal((await store.forget(forgotten.id, act)).kind, 'forgotten')
      assert.deepEqual(await found(references, `of ${forgotten.id}`), [])
      assert.deepEqual(await found(references, `of ${reaped.id}`), [reaped.id])
      await harness.advance(expiresInMs + minuteMs)
      await store.reap({ limit: 10 })
      assert.deepEqual(await found(references, `of ${reaped.id}`), [])
      assert.deepEqual(await references.of(reaped.id), [])
    },
  },
  {
    name: 'loses the references of a tenant that is erased, and of no other',
    needs: ['erasure'],
    async run(harness) {
      const store = await harness.open()
      const references = referencesIn(store)
      const erased = await own(store, 'erased')
      const other = await own(store, 'other', {
        identity: { id: erased.id.replace(/^./, 'f'), scope: 'tenant-2', operation: 'payments.create' },
      })
      for (const claim of [erased, other]) {
        await references.add(claim, named('shared'))
        await store.complete(claim, answer(), retentionMs)
      }
      await store.erasure?.mark('tenant-1')
      await store.erasure?.erase({ scope: 'tenant-1', limit: 10 })
      assert.deepEqual(await found(references, 'shared'), [other.id])
    },
  },
  {
    name: 'has the references of an atomic row exactly when its transaction committed',
    needs: ['transactions'],
    async run(harness) {
      const store = await harness.open()
      const references = referencesIn(store)
      const { transactor } = store
      assert.ok(transactor)
      for (const wish of ['rollback', 'commit'] as const) {
        const request = atomicRequest(`atomic ${wish}`)
        const end = await transactor.transaction(async tx => {
          const reservation = await transactor.reserve(tx, request)
          assert.equal(reservation.kind, 'free')
          assert.equal(await transactor.record(tx, request, answer(), 0), 'recorded')
          await references.addIn(tx, request.identity.id, named(`inv ${wish}`))
          return wish
        })
        assert.equal(end.kind, wish === 'commit' ? 'committed' : 'rolled-back')
        assert.deepEqual(await found(references, `inv ${wish}`), wish === 'commit' ? [request.identity.id] : [])
      }
    },
  },
]

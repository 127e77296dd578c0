/** Everything of one tenant that has ended goes, and nothing else. */
import assert from 'node:assert/strict'
import type { ErasedBatch, Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, hourMs, identity, leaseMs, minuteMs, notKnown, own } from '../fixture.ts'
import { request, retentionMs, retryNow } from '../fixture.ts'
import { charge, openSteps, ownPhased, phasedRequest } from '../steps/fixture.ts'

const batchesMax = 1_000
const scope = 'tenant-1'

async function eraseAll(store: Store, limit = 2): Promise<ErasedBatch> {
  const { erasure } = store
  assert.ok(erasure)
  let total = { rows: 0, messages: 0, auditTexts: 0 }
  for (let batches = 0; batches < batchesMax; batches += 1) {
    const { rows, messages, auditTexts } = await erasure.erase({ scope, limit })
    assert.ok(rows <= limit && messages <= limit, `a batch of ${rows} and ${messages}, over its limit`)
    if (rows + messages + auditTexts === 0) return total
    total = { rows: total.rows + rows, messages: total.messages + messages, auditTexts: total.auditTexts + auditTexts }
  }
  throw new assert.AssertionError({ message: `the erasure did not end after ${batchesMax} batches` })
}

async function completed(store: Store, key: string, over: Parameters<typeof own>[2] = {}): Promise<string> {
  const claim = await own(store, key, over)
  assert.equal(await store.complete(claim, answer(key), retentionMs), 'written')
  return claim.id
}

export const erasureCases: readonly StoreCase[] = [
  {
    name: 'erases completed and retryable rows of a tenant, in batches, and none of another',
    async run(harness) {
      const store = await harness.open()
      assert.ok(store.erasure)
      const ids = []
      for (const key of ['a', 'b', 'c']) ids.push(await completed(store, key))
      const failed = await own(store, 'failed')
      await store.fail(failed, retryNow)
      const other = { identity: identity('a', { id: identity('other').id, scope: 'tenant-10' }) }
      const otherId = await completed(store, 'other', other)
      await store.erasure.mark(scope)
      assert.deepEqual(await eraseAll(store), { rows: 4, messages: 0, auditTexts: 0 })
      for (const id of [...ids, failed.id]) assert.equal(await store.read(id), undefined)
      assert.equal((await store.read(otherId))?.state, 'completed')
      assert.deepEqual(await store.erasure.left(scope), { openRows: 0, waitingMessages: 0 })
    },
  },
  {
    name: 'erases nothing of a tenant that was not marked, and nothing that began after the mark',
    async run(harness) {
      const store = await harness.open()
      assert.ok(store.erasure)
      const old = await completed(store, 'old')
      assert.deepEqual(await eraseAll(store), { rows: 0, messages: 0, auditTexts: 0 })
      await store.erasure.mark(scope)
      await harness.advance(minuteMs)
      const newer = await completed(store, 'newer')
      assert.deepEqual(await eraseAll(store), { rows: 1, messages: 0, auditTexts: 0 })
      assert.equal(await store.read(old), undefined)
      assert.equal((await store.read(newer))?.state, 'completed')
    },
  },
  {
    name: 'counts what is open, and erases it with a reap after it has ended',
    async run(harness) {
      const store = await harness.open()
      assert.ok(store.erasure)
      const running = await own(store, 'running')
      const unknown = await own(store, 'unknown')
      await store.fail(unknown, notKnown)
      await store.erasure.mark(scope)
      assert.deepEqual(await eraseAll(store), { rows: 0, messages: 0, auditTexts: 0 })
      assert.deepEqual(await store.erasure.left(scope), { openRows: 2, waitingMessages: 0 })
      await harness.advance(minuteMs)
      assert.equal(await store.complete(running, answer(), retentionMs), 'written')
      assert.equal(await store.reap({ limit: 10 }), 1)
      assert.equal(await store.read(running.id), undefined)
      await store.settle(unknown.id, { kind: 'never-happened' }, act, retentionMs)
      await store.reap({ limit: 10 })
      await store.reap({ limit: 10 })
      assert.equal(await store.read(unknown.id), undefined)
      // The mark is gone with the last of its rows.
      await store.reap({ limit: 10 })
      const again = await completed(store, 'running')
      await store.reap({ limit: 10 })
      assert.equal((await store.read(again))?.state, 'completed')
    },
  },
  {
    name: 'blanks what people wrote about the rows of a tenant, and keeps who acted',
    async run(harness) {
      const store = await harness.open()
      assert.ok(store.erasure)
      const forgotten = await completed(store, 'forgotten')
      await store.forget(forgotten, act)
      const settled = await own(store, 'settled')
      await store.fail(settled, notKnown)
      await store.settle(settled.id, { kind: 'happened', outcome: answer() }, act, retentionMs)
      await store.erasure.mark(scope)
      assert.deepEqual(await eraseAll(store), { rows: 1, messages: 0, auditTexts: 2 })
      for (const [id, name] of [
        [forgotten, 'forget'],
        [settled.id, 'settle'],
      ] as const) {
        const { audit, evidence } = await store.inspect(id)
        assert.deepEqual(
          audit.map(entry => [entry.act, entry.by, entry.reason, entry.detail]),
          [[name, act.by, 'erased', '']],
        )
        assert.deepEqual(evidence, [])
      }
    },
  },
  {
    name: 'leaves parked work, and work with an effect in doubt, to a person',
    needs: ['steps'],
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      assert.ok(store.erasure)
      const parked = await ownPhased(store, 'parked')
      assert.equal(await store.park(parked, 'poison'), 'written')
      const inDoubt = await ownPhased(store, 'in doubt')
      assert.equal(await steps.openIntent(inDoubt, charge(0, { windowMs: hourMs }), leaseMs), 'written')
      const { recovery: _recovery, leaseMs: _leaseMs, takeOver: _takeOver, ...asked } = phasedRequest('pending')
      await store.enqueue({ ...asked, work: { version: 1, input: '{}' } })
      await store.erasure.mark(scope)
      assert.deepEqual(await eraseAll(store), { rows: 0, messages: 0, auditTexts: 0 })
      assert.deepEqual(await store.erasure.left(scope), { openRows: 3, waitingMessages: 0 })
      assert.equal((await store.claim(request('parked'))).kind, 'seen')
    },
  },
]

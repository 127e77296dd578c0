/** How much of a scope is open, and how much of it is stored. */
import assert from 'node:assert/strict'
import type { Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answer, bytes, identity, notKnown, own, retentionMs, retryNow } from '../fixture.ts'
import { quotasIn } from './fixture.ts'
import { openSteps, phasedRequest } from '../steps/fixture.ts'

const scope = 'tenant-1'
const max = 100
/** What a store adds to a body: its headers, what it packs them with, and a little more of each where it is encrypted. */
const aroundMax = 300
const ratioMax = 1.5

async function completed(store: Store, key: string, body: string, over: Parameters<typeof own>[2] = {}): Promise<void> {
  assert.equal(await store.complete(await own(store, key, over), answer(body), retentionMs), 'written')
}

function otherScope(key: string) {
  return { identity: identity(key, { scope: 'tenant-10' }) }
}

function assertBytes(actual: number | undefined, bodies: readonly number[]): void {
  const least = bodies.reduce((sum, size) => sum + size, 0)
  const most = ratioMax * least + bodies.length * aroundMax
  assert.ok(actual !== undefined && actual >= least && actual <= most, `expected ${least} to ${most}, got ${actual}`)
}

export const usageCases: readonly StoreCase[] = [
  {
    name: 'counts the rows of a scope that are not completed, whatever their state, and none of another scope',
    async run(harness) {
      const store = await harness.open()
      const quotas = quotasIn(store)
      await own(store, 'in progress')
      await store.fail(await own(store, 'failed'), retryNow)
      await store.fail(await own(store, 'unknown'), notKnown)
      await completed(store, 'completed', 'done')
      await own(store, 'of another', otherScope('of another'))
      assert.equal(await quotas.openKeys({ scope, max }), 3)
      assert.equal(await quotas.openKeys({ scope: 'tenant-10', max }), 1)
      assert.equal(await quotas.openKeys({ scope: 'tenant-2', max }), 0)
    },
  },
  {
    name: 'counts the open rows of one operation, and no further than it is asked to',
    async run(harness) {
      const store = await harness.open()
      const quotas = quotasIn(store)
      for (const key of ['a', 'b', 'c']) await own(store, key)
      await own(store, 'refund', { identity: identity('refund', { operation: 'refunds.create' }) })
      assert.equal(await quotas.openKeys({ scope, operation: 'payments.create', max }), 3)
      assert.equal(await quotas.openKeys({ scope, operation: 'refunds.create', max }), 1)
      assert.equal(await quotas.openKeys({ scope, max }), 4)
      assert.equal(await quotas.openKeys({ scope, max: 2 }), 2)
    },
  },
  {
    name: 'measures the stored outcomes of a scope, small and large, of all operations or of one',
    async run(harness) {
      const store = await harness.open()
      const quotas = quotasIn(store)
      assert.equal(await quotas.storedBytes({ scope }), 0)
      await completed(store, 'small', 's'.repeat(100))
      await completed(store, 'large', 'l'.repeat(100_000))
      await completed(store, 'of another', 'o'.repeat(5_000), otherScope('of another'))
      const refund = { identity: identity('refund', { operation: 'refunds.create' }) }
      await completed(store, 'refund', 'r'.repeat(10_000), refund)
      assertBytes(await quotas.storedBytes({ scope }), [100, 100_000, 10_000])
      assertBytes(await quotas.storedBytes({ scope, operation: 'refunds.create' }), [10_000])
      assertBytes(await quotas.storedBytes({ scope: 'tenant-10' }), [5_000])
    },
  },
  {
    name: 'measures the inputs of phased work, in bytes and not in characters, and counts it as open',
    needs: ['steps'],
    async run(harness) {
      const { store } = await openSteps(harness)
      const quotas = quotasIn(store)
      const input = JSON.stringify('é'.repeat(1_000))
      const { recovery: _recovery, leaseMs: _leaseMs, takeOver: _takeOver, ...asked } = phasedRequest('pending')
      assert.equal((await store.enqueue({ ...asked, work: { version: 1, input } })).kind, 'queued')
      assertBytes(await quotas.storedBytes({ scope }), [bytes(input).length])
      assert.equal(await quotas.openKeys({ scope, max }), 1)
    },
  },
]

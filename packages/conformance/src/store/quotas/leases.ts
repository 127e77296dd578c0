/** Tokens of a bucket that all processes share. */
import assert from 'node:assert/strict'
import type { Quotas } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { minuteMs, uuidOf } from '../fixture.ts'
import { quotasIn } from './fixture.ts'

/** So few that no more than one of them comes back while a slow machine makes its calls. */
const perMinute = 4
const oneMs = minuteMs / perMinute
const bucket = uuidOf('bucket')

async function quotasOf(harness: StoreHarness): Promise<Quotas> {
  return quotasIn(await harness.open())
}

async function granted(quotas: Quotas, tokens: number, from = bucket): Promise<number> {
  return (await quotas.lease({ bucket: from, perMinute, tokens })).granted
}

export const leasedTokenCases: readonly StoreCase[] = [
  {
    name: 'leases from a bucket that is full at first no more than it has, and tells when there is another token',
    async run(harness) {
      const quotas = await quotasOf(harness)
      assert.deepEqual(await quotas.lease({ bucket, perMinute, tokens: 2 }), { granted: 2, nextInMs: 0 })
      const rest = await quotas.lease({ bucket, perMinute, tokens: 3 })
      assert.equal(rest.granted, 2)
      assert.ok(rest.nextInMs > 0 && rest.nextInMs <= oneMs, `expected at most ${oneMs} ms, got ${rest.nextInMs}`)
      const none = await quotas.lease({ bucket, perMinute, tokens: 1 })
      assert.equal(none.granted, 0)
      assert.ok(none.nextInMs > 0 && none.nextInMs <= oneMs, `expected at most ${oneMs} ms, got ${none.nextInMs}`)
    },
  },
  {
    name: 'fills a bucket evenly by its own clock, and never beyond a minute of tokens',
    async run(harness) {
      const quotas = await quotasOf(harness)
      assert.equal(await granted(quotas, perMinute), perMinute)
      await harness.advance(2 * oneMs)
      assert.equal(await granted(quotas, perMinute), 2)
      await harness.advance(10 * minuteMs)
      assert.equal(await granted(quotas, 3), 3)
      assert.equal(await granted(quotas, perMinute), 1)
    },
  },
  {
    name: 'keeps the tokens of two buckets apart',
    async run(harness) {
      const quotas = await quotasOf(harness)
      assert.equal(await granted(quotas, perMinute), perMinute)
      assert.equal(await granted(quotas, perMinute, uuidOf('other bucket')), perMinute)
    },
  },
  {
    name: 'leases no token twice, however many ask at once',
    async run(harness) {
      const [one, two] = [await quotasOf(harness), await quotasOf(harness)]
      const many = { bucket, perMinute: 20, tokens: 1 }
      const beganAt = performance.now()
      const leases = await Promise.all(Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? one : two).lease(many)))
      const refilled = Math.ceil(((performance.now() - beganAt) * many.perMinute) / minuteMs)
      const sum = leases.reduce((total, leased) => total + leased.granted, 0)
      assert.ok(sum >= 20 && sum <= 20 + refilled, `expected 20 tokens and at most ${refilled} more, got ${sum}`)
    },
  },
  {
    name: 'takes back tokens that were not needed, up to a full bucket',
    async run(harness) {
      const quotas = await quotasOf(harness)
      assert.equal(await granted(quotas, perMinute), perMinute)
      await quotas.giveBack({ bucket, perMinute, tokens: 3 })
      assert.equal(await granted(quotas, perMinute), 3)
      await quotas.giveBack({ bucket, perMinute, tokens: 100 })
      assert.equal(await granted(quotas, 100), perMinute)
      await quotas.giveBack({ bucket: uuidOf('never leased'), perMinute, tokens: 1 })
      assert.equal(await granted(quotas, 2 * perMinute, uuidOf('never leased')), perMinute)
    },
  },
  {
    name: 'prunes buckets that are full again, as many as it is asked to, and changes none',
    async run(harness) {
      const quotas = await quotasOf(harness)
      const full = ['a', 'b', 'c'].map(uuidOf)
      for (const name of full) await granted(quotas, 1, name)
      await harness.advance(2 * minuteMs)
      assert.equal(await granted(quotas, 3), 3)
      assert.equal(await quotas.prune({ limit: 2 }), 2)
      assert.equal(await quotas.prune({ limit: 10 }), 1)
      assert.equal(await quotas.prune({ limit: 10 }), 0)
      assert.equal(await granted(quotas, perMinute), 1)
      for (const name of full) assert.equal(await granted(quotas, perMinute, name), perMinute)
    },
  },
]

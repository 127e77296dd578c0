/** Comparisons with a provider's ledger: when one is due, who runs it, and what the last one found. */
import assert from 'node:assert/strict'
import type { LedgerRun, Ledgers, Store } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { assertAbout, hourMs, leaseMs, minuteMs } from '../fixture.ts'

const everyMs = 24 * hourMs
const counts = { compared: 1_000_000, missing: 1, extra: 2, different: 3, settled: 4 } as const
const nothing = { compared: 0, missing: 0, extra: 0, different: 0, settled: 0 } as const

type LedgerStore = Store & { readonly ledgers: Ledgers }

async function open(harness: StoreHarness): Promise<LedgerStore> {
  const store = await harness.open()
  assert.ok(store.ledgers, `${store.name} says that it has ledgers, and has none`)
  // `as`: the assertion narrows the member, not the object.
  return store as LedgerStore
}

async function begun(
  store: LedgerStore,
  name = 'provider',
  over: Partial<{ everyMs: number }> = {},
): Promise<LedgerRun> {
  const result = await store.ledgers.begin(name, { everyMs, leaseMs, ...over })
  assert.ok(result.kind === 'begun', `expected the comparison to begin, but it is ${result.kind}`)
  assert.equal(result.run.name, name)
  return result.run
}

async function notDue(store: LedgerStore, over: Partial<{ everyMs: number }> = {}): Promise<number> {
  const result = await store.ledgers.begin('provider', { everyMs, leaseMs, ...over })
  assert.ok(result.kind === 'not-due', `expected the comparison not to begin, but it is ${result.kind}`)
  return result.inMs
}

export const ledgerCases: readonly StoreCase[] = [
  {
    name: 'begins a comparison that never was, and the next as long after it began as is asked',
    async run(harness) {
      const store = await open(harness)
      const first = await begun(store)
      assert.equal(await store.ledgers.end(first, { counts }), 'written')
      assertAbout(await notDue(await open(harness)), everyMs)
      await harness.advance(everyMs - hourMs)
      assertAbout(await notDue(store), hourMs)
      await harness.advance(hourMs + minuteMs)
      const second = await begun(store)
      assert.ok(second.run > first.run, `${second.run} after ${first.run}`)
    },
  },
  {
    name: 'keeps comparisons of different names apart',
    async run(harness) {
      const store = await open(harness)
      const first = await begun(store, 'provider')
      const other = await begun(store, 'caf\u00e9')
      await store.ledgers.end(first, { counts })
      assert.equal(await store.ledgers.last('caf\u00e9'), undefined)
      await store.ledgers.end(other, { counts: nothing })
      assert.equal((await store.ledgers.last('provider'))?.missing, 1)
      assert.equal((await store.ledgers.last('caf\u00e9'))?.missing, 0)
    },
  },
  {
    name: 'begins a comparison for one of many who ask at once',
    async run(harness) {
      const stores = [await open(harness), await open(harness)]
      const asked = Array.from({ length: 5 }, () =>
        stores.map(({ ledgers }) => ledgers.begin('provider', { everyMs, leaseMs })),
      )
      const results = await Promise.all(asked.flat())
      assert.equal(results.filter(result => result.kind === 'begun').length, 1)
    },
  },
  {
    name: 'begins none while another is under way within its lease, however often it may run',
    async run(harness) {
      const store = await open(harness)
      const run = await begun(store, 'provider', { everyMs: 0 })
      const left = await notDue(store, { everyMs: 0 })
      assertAbout(left, leaseMs)
      await harness.advance(leaseMs - 2 * minuteMs)
      assert.equal(await store.ledgers.renew(run, leaseMs), 'written')
      await harness.advance(leaseMs - 2 * minuteMs)
      await notDue(store, { everyMs: 0 })
      assert.equal(await store.ledgers.end(run, { counts }), 'written')
      await begun(store, 'provider', { everyMs: 0 })
    },
  },
  {
    name: 'begins another when the lease of one ran out, and refuses the old one from then on',
    async run(harness) {
      const store = await open(harness)
      const { ledgers } = await open(harness)
      const stale = await begun(store, 'provider', { everyMs: minuteMs })
      await harness.advance(leaseMs + minuteMs)
      const run = await begun(store, 'provider', { everyMs: minuteMs })
      assert.ok(run.run > stale.run)
      assert.equal(await ledgers.renew(stale, leaseMs), 'claim-lost')
      assert.equal(await ledgers.end(stale, { counts }), 'claim-lost')
      assert.equal(await ledgers.end(stale, { retryInMs: 0 }), 'claim-lost')
      assert.equal(await ledgers.last('provider'), undefined)
      await notDue(store, { everyMs: 0 })
      assert.equal(await ledgers.renew(run, leaseMs), 'written')
      assert.equal(await ledgers.end(run, { counts: nothing }), 'written')
      assert.equal((await ledgers.last('provider'))?.missing, 0)
    },
  },
  {
    name: 'takes the end of an overdue comparison that nobody replaced',
    async run(harness) {
      const store = await open(harness)
      const run = await begun(store)
      await harness.advance(2 * leaseMs)
      assert.equal(await store.ledgers.renew(run, leaseMs), 'written')
      await harness.advance(2 * leaseMs)
      assert.equal(await store.ledgers.end(run, { counts }), 'written')
    },
  },
  {
    name: 'refuses the word of a comparison that never was',
    async run(harness) {
      const store = await open(harness)
      const { ledgers } = store
      for (const run of [
        { name: 'nobody', run: 1 },
        await begun(store).then(({ name, run }) => ({ name, run: run + 1 })),
      ]) {
        assert.equal(await ledgers.renew(run, leaseMs), 'claim-lost')
        assert.equal(await ledgers.end(run, { counts }), 'claim-lost')
        assert.equal(await ledgers.last(run.name), undefined)
      }
    },
  },
  {
    name: 'begins the next comparison after a failed one when it was told to, sooner than usual',
    async run(harness) {
      const store = await open(harness)
      const first = await begun(store)
      assert.equal(await store.ledgers.end(first, { retryInMs: 2 * hourMs }), 'written')
      assertAbout(await notDue(store), 2 * hourMs)
      await harness.advance(hourMs)
      assertAbout(await notDue(store), hourMs)
      await harness.advance(hourMs + minuteMs)
      assert.ok((await begun(store)).run > first.run)
    },
  },
  {
    name: 'tells what the last finished comparison found and how long ago it ended; a failed one changes nothing',
    async run(harness) {
      const store = await open(harness)
      const { ledgers } = await open(harness)
      assert.equal(await ledgers.last('provider'), undefined)
      const failed = await begun(store)
      assert.equal(await ledgers.last('provider'), undefined)
      await ledgers.end(failed, { retryInMs: 0 })
      assert.equal(await ledgers.last('provider'), undefined)
      const first = await begun(store)
      await harness.advance(leaseMs / 2)
      await ledgers.end(first, { counts })
      await harness.advance(2 * hourMs)
      const last = await ledgers.last('provider')
      assert.ok(last)
      const { finishedAgoMs, ...found } = last
      assert.deepEqual(found, counts)
      assertAbout(finishedAgoMs, 2 * hourMs)
      await harness.advance(everyMs)
      await ledgers.end(await begun(store), { retryInMs: hourMs })
      const still = await ledgers.last('provider')
      assert.equal(still?.missing, 1)
      assertAbout(still?.finishedAgoMs ?? 0, everyMs + 2 * hourMs)
      await harness.advance(2 * hourMs)
      await ledgers.end(await begun(store), { counts: nothing })
      assert.equal((await ledgers.last('provider'))?.missing, 0)
    },
  },
]

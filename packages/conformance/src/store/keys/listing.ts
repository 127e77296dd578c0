/** Pages that miss nothing and repeat nothing, and text that is compared byte by byte. */
import assert from 'node:assert/strict'
import type { KeyRecord, Listing, Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, identity, own, recordOf, retentionMs, rowIn, still } from '../fixture.ts'

const pagesMax = 200

async function all(store: Store, listing: Listing, between: () => Promise<void> = async () => {}) {
  const records: KeyRecord[] = []
  let after: string | undefined
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await store.list(after === undefined ? listing : { ...listing, after })
    assert.ok(page.records.length <= listing.limit, `a page of ${page.records.length}, over its limit`)
    records.push(...page.records)
    if (page.next === undefined) return records
    after = page.next
    await between()
  }
  throw new assert.AssertionError({ message: `the listing did not end after ${pagesMax} pages` })
}

function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(row => row.id).toSorted()
}

/** Each pair is equal to a collation that folds case, pads or normalises. */
const lookalikes = [
  'pay',
  'Pay',
  'pay ',
  ' pay',
  'caf\u00e9',
  'cafe\u0301',
  'cafe',
  'stra\u00dfe',
  'strasse',
  'a_b',
  'a%b',
  '\ud83d\udcb6',
]

/** What a scope may contain: see `scopeText`. It never contains U+0000 or half of a surrogate pair. */
export const unusualScopes: readonly string[] = [
  ...lookalikes,
  '',
  '__proto__',
  'tenant"\n\'7;--',
  "''",
  '\\',
  "\\'",
  '$$',
  '{a,"b"}',
  'a/b%2Fc',
  '\ufffd',
  '\ud83d\udc69\u200d\ud83d\udd2c',
  '\u202e\u05d0\u05d1',
  '\u0001\u001f\u007f\u0085',
  'x'.repeat(1_024),
  '\ud83d\udd11'.repeat(256),
]

export const listingCases: readonly StoreCase[] = [
  {
    name: 'lists nothing in an empty store',
    async run(harness) {
      const store = await harness.open()
      assert.deepEqual(await store.list({ limit: 10 }), { records: [], next: undefined })
    },
  },
  {
    name: 'lists every row once, page by page, whatever the size of the page',
    async run(harness) {
      const store = await harness.open()
      const claims = []
      for (let row = 0; row < 13; row += 1) claims.push(await own(store, `row ${row}`))
      for (const limit of [1, 4, 13, 1_000]) assert.deepEqual(idsOf(await all(store, { limit })), idsOf(claims))
    },
  },
  {
    name: 'lists every row that stays once while others come and go between the pages',
    async run(harness) {
      const store = await harness.open()
      const staying = []
      for (let row = 0; row < 9; row += 1) staying.push(await own(store, `stays ${row}`))
      for (let row = 0; row < 6; row += 1) await rowIn.completed(harness, store, `goes ${row}`)
      let turn = 0
      const found = await all(store, { limit: 2 }, async () => {
        await store.forget(identity(`goes ${turn}`).id, act)
        await own(store, `comes ${turn}`)
        turn += 1
      })
      const ids = idsOf(found)
      assert.equal(new Set(ids).size, ids.length, 'a row was listed twice')
      for (const claim of staying) assert.ok(ids.includes(claim.id), 'a row was missed')
    },
  },
  {
    name: 'lists by state and by operation, and by both',
    async run(harness) {
      const store = await harness.open()
      const done = await rowIn.completed(harness, store, 'done')
      const unknown = [await rowIn.unknown(harness, store, 'u1'), await rowIn.unknown(harness, store, 'u2')]
      const failed = await rowIn.failed_retryable(harness, store, 'failed')
      const other = await own(store, 'other', { identity: identity('other', { operation: 'orders.create' }) })
      assert.deepEqual(idsOf(await all(store, { limit: 1, state: 'unknown' })), idsOf(unknown))
      assert.deepEqual(idsOf(await all(store, { limit: 1, state: 'completed' })), [done.id])
      assert.deepEqual(idsOf(await all(store, { limit: 1, state: 'failed_retryable' })), [failed.id])
      assert.deepEqual(idsOf(await all(store, { limit: 1, state: 'in_progress' })), [other.id])
      assert.deepEqual(await all(store, { limit: 1, state: 'pending' }), [])
      assert.deepEqual(idsOf(await all(store, { limit: 1, operation: 'orders.create' })), [other.id])
      assert.deepEqual(await all(store, { limit: 1, operation: 'orders.create', state: 'unknown' }), [])
    },
  },
  {
    name: 'lists the rows of one scope, page by page, and with a state, an operation or a parked mark beside it',
    async run(harness) {
      const store = await harness.open()
      const of = (key: string, scope: string, operation = 'payments.create') =>
        own(store, key, { identity: identity(key, { scope, operation }) })
      const ours = []
      for (let row = 0; row < 7; row += 1) ours.push(await of(`ours ${row}`, 'acme/alex'))
      for (let row = 0; row < 7; row += 1) await of(`theirs ${row}`, 'acme/bo')
      const order = await of('order', 'acme/alex', 'orders.create')
      const done = await of('done', 'acme/alex')
      await store.complete(done, answer(), retentionMs)
      const scope = 'acme/alex'
      for (const limit of [1, 4, 1_000])
        assert.deepEqual(idsOf(await all(store, { limit, scope })), idsOf([...ours, order, done]))
      assert.deepEqual(idsOf(await all(store, { limit: 2, scope, state: 'completed' })), [done.id])
      assert.deepEqual(idsOf(await all(store, { limit: 2, scope, operation: 'orders.create' })), [order.id])
      assert.deepEqual(await all(store, { limit: 2, scope, state: 'unknown' }), [])
      assert.deepEqual(await all(store, { limit: 2, scope, parked: true }), [])
      assert.deepEqual(await all(store, { limit: 2, scope: 'acme' }), [])
    },
  },
  {
    name: 'tells scopes apart by every byte when it lists them',
    async run(harness) {
      const store = await harness.open()
      for (const [index, scope] of unusualScopes.entries()) {
        await own(store, `row ${index}`, { identity: identity(`row ${index}`, { scope }) })
      }
      for (const scope of unusualScopes) {
        const found = await all(store, { limit: 5, scope })
        assert.deepEqual(
          found.map(record => record.scope),
          [scope],
        )
      }
    },
  },
  {
    name: 'lists what a read shows, without the outcome',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { description: 'order 7' })
      await store.complete(claim, answer(), retentionMs)
      const [listed] = await all(store, { limit: 10 })
      assert.ok(listed)
      assert.equal(listed.outcome, undefined)
      const read = await recordOf(store, claim.id)
      assert.deepEqual(still(listed), still({ ...read, outcome: undefined }))
    },
  },
  {
    name: 'tells operations apart by case, spaces and Unicode form',
    async run(harness) {
      const store = await harness.open()
      for (const [index, operation] of lookalikes.entries()) {
        await own(store, `row ${index}`, { identity: identity(`row ${index}`, { operation }) })
      }
      for (const operation of lookalikes) {
        const found = await all(store, { limit: 5, operation })
        assert.deepEqual(
          found.map(record => record.operation),
          [operation],
        )
      }
    },
  },
  {
    name: 'gives scopes back byte for byte, to read, list and inspect',
    async run(harness) {
      const store = await harness.open()
      for (const [index, scope] of unusualScopes.entries()) {
        const claim = await own(store, `row ${index}`, { identity: identity(`row ${index}`, { scope }) })
        assert.equal((await recordOf(store, claim.id)).scope, scope)
        assert.equal((await store.inspect(claim.id)).record?.scope, scope)
      }
      const listed = await all(store, { limit: 5 })
      assert.deepEqual(listed.map(record => record.scope).toSorted(), unusualScopes.toSorted())
    },
  },
]

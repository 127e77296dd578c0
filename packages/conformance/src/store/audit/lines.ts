/** Lines outlive their rows: read in pages, deleted by age or when a sink has them, blanked for an erased tenant. */
import assert from 'node:assert/strict'
import type { AuditRecords, Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { act, answer, expiresInMs, hourMs, identity, leaseMs, minuteMs, own, retentionMs } from '../fixture.ts'
import { linesOf, recordedCase, trailOf } from './fixture.ts'

const day = 24 * hourMs
const scope = 'tenant-1'
const otherScope = 'tenant-10'

async function completed(store: Store, key: string, ofScope = scope): Promise<string> {
  const claim = await own(store, key, { identity: identity(key, { scope: ofScope }) })
  assert.equal(await store.complete(claim, answer(key), retentionMs), 'written')
  return claim.id
}

async function allPages(records: AuditRecords<unknown>, limit: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let after: string | undefined; ;) {
    const { lines, next } = await records.page({ limit, ...(after === undefined ? {} : { after }) })
    assert.ok(lines.length <= limit)
    ids.push(...lines.map(({ id }) => id))
    if (next === undefined) return ids
    after = next
  }
}

export const auditedLineCases: readonly StoreCase[] = [
  recordedCase({ name: 'keeps lines when their rows are reaped or forgotten' }, async ({ harness, records, store }) => {
    const forgotten = await completed(store, 'forgotten')
    assert.deepEqual(await store.forget(forgotten, act), { kind: 'forgotten' })
    const reaped = await completed(store, 'reaped')
    await harness.advance(expiresInMs + hourMs)
    assert.equal(await store.reap({ limit: 10 }), 1)
    assert.equal(await store.read(reaped), undefined)
    for (const id of [forgotten, reaped]) assert.deepEqual(await trailOf(records, id), ['completed 1 201'])
  }),
  recordedCase({ name: 'pages by time, each line once' }, async ({ harness, records, store }) => {
    const ids: string[] = []
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      ids.push(await completed(store, key))
      await harness.advance(minuteMs)
    }
    for (const limit of [1, 2, 3, 5, 1_000]) assert.deepEqual(await allPages(records, limit), ids)
    // At one instant, and there is an order all the same.
    const many = await Promise.all(Array.from({ length: 20 }, (_, n) => completed(store, `many ${n}`)))
    const paged = await allPages(records, 3)
    assert.deepEqual(paged.slice(0, 5), ids)
    assert.deepEqual([...paged.slice(5)].toSorted(), many.toSorted())
  }),
  recordedCase({ name: 'finds the lines of a scope, of a row, and from an instant on' }, async recorded => {
    const { harness, records, store } = recorded
    const first = await completed(store, 'first')
    await harness.advance(hourMs)
    const other = await completed(store, 'other', otherScope)
    const second = await completed(store, 'second')
    const idsOf = async (query: Parameters<typeof linesOf>[1]) => (await linesOf(records, query)).map(({ id }) => id)
    assert.deepEqual(await idsOf({ scope }), [first, second])
    assert.deepEqual(await idsOf({ scope: otherScope }), [other])
    assert.deepEqual(await idsOf({ id: second }), [second])
    assert.deepEqual(await idsOf({ id: second, scope: otherScope }), [])
    const [, fromSecond] = await linesOf(records)
    assert.ok(fromSecond)
    assert.deepEqual(await idsOf({ fromMs: fromSecond.atMs }), [other, second])
    assert.deepEqual(await idsOf({ fromMs: fromSecond.atMs, scope }), [second])
  }),
  recordedCase(
    { name: 'deletes by age the oldest first, so many at a time, and never what is younger than a day' },
    async ({ harness, records, store }) => {
      for (const key of ['a', 'b', 'c']) await completed(store, key)
      await harness.advance(10 * day)
      const young = await completed(store, 'young')
      assert.equal(await records.expire({ olderThanMs: 11 * day, limit: 10 }), 0)
      assert.equal(await records.expire({ olderThanMs: 9 * day, limit: 2 }), 2)
      assert.equal(await records.expire({ olderThanMs: 9 * day, limit: 2 }), 1)
      assert.equal(await records.expire({ olderThanMs: 1, limit: 10 }), 0)
      assert.deepEqual(await allPages(records, 10), [young])
      await harness.advance(day + hourMs)
      assert.equal(await records.expire({ olderThanMs: 1, limit: 10 }), 1)
    },
  ),
  ...sinkCases(),
  recordedCase(
    { name: 'blanks scope and fingerprint in the lines of an erased tenant, and of no other' },
    async ({ records, store }) => {
      const { erasure } = store
      if (erasure === undefined) return
      const ids = [await completed(store, 'a'), await completed(store, 'b')]
      const other = await completed(store, 'other', otherScope)
      const nothing = { rows: 0, messages: 0, auditTexts: 0, auditLines: 0 }
      assert.deepEqual(await erasure.erase({ scope, limit: 1 }), nothing)
      await erasure.mark(scope)
      let lines = 0
      for (let batches = 0; batches < 10; batches += 1) lines += (await erasure.erase({ scope, limit: 1 })).auditLines
      assert.equal(lines, 2)
      const shown = await linesOf(records)
      assert.deepEqual(shown.map(line => line.id).toSorted(), [...ids, other].toSorted())
      for (const line of shown) {
        const isOther = line.id === other
        assert.deepEqual([line.scope, line.fingerprint !== undefined], [isOther ? otherScope : undefined, isOther])
        assert.deepEqual([line.what, line.status, line.fence], ['completed', 201, 1])
      }
    },
  ),
]

function sinkCases(): readonly StoreCase[] {
  return [
    recordedCase(
      { name: 'hands the oldest lines to one process at a time, and deletes them when they were handed over' },
      async ({ harness, records, store }) => {
        assert.equal(await records.take({ limit: 2, leaseMs }), undefined)
        const ids: string[] = []
        for (const key of ['a', 'b', 'c']) {
          ids.push(await completed(store, key))
          await harness.advance(1_000)
        }
        const taken = await records.take({ limit: 2, leaseMs })
        assert.ok(taken)
        assert.deepEqual(
          taken.lines.map(({ id }) => id),
          ids.slice(0, 2),
        )
        assert.equal(await records.take({ limit: 2, leaseMs }), undefined)
        assert.equal(await records.handedOver(taken), 'written')
        assert.deepEqual(await allPages(records, 10), ids.slice(2))
        const rest = await records.take({ limit: 2, leaseMs })
        assert.deepEqual(
          rest?.lines.map(({ id }) => id),
          ids.slice(2),
        )
      },
    ),
    recordedCase(
      {
        name: 'hands lines over again when they were given back, or when a lease ended, and then only the newer counts',
      },
      async ({ harness, records, store }) => {
        const id = await completed(store, 'a')
        const first = await records.take({ limit: 10, leaseMs })
        assert.ok(first)
        await records.giveBack(first)
        const second = await records.take({ limit: 10, leaseMs })
        assert.ok(second)
        assert.deepEqual([second.lines[0]?.id, second.lines[0]?.lineId], [id, first.lines[0]?.lineId])
        await harness.advance(leaseMs + minuteMs)
        const third = await records.take({ limit: 10, leaseMs })
        assert.ok(third)
        await records.giveBack(second)
        assert.equal(await records.handedOver(second), 'claim-lost')
        assert.deepEqual(await allPages(records, 10), [id])
        assert.equal(await records.handedOver(third), 'written')
        assert.deepEqual(await allPages(records, 10), [])
        // Numbers are for good: a later line is not taken for one that the sink has.
        await completed(store, 'b')
        const fourth = await records.take({ limit: 10, leaseMs })
        assert.notEqual(fourth?.lines[0]?.lineId, first.lines[0]?.lineId)
      },
    ),
  ]
}

/** The queues of operators, and their audit. */
import assert from 'node:assert/strict'
import type { AdminRecords, WorkListing } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { identity, leaseMs, minuteMs, notKnown, own, rowIn } from '../fixture.ts'
import { acted, adminIn, by, openAdmin } from './fixture.ts'

const pagesMax = 100

async function idsOf(
  admin: AdminRecords,
  listing: Omit<WorkListing, 'limit'>,
  limit = 100,
): Promise<readonly string[]> {
  const ids: string[] = []
  let after: string | undefined
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await admin.work({ ...listing, limit, after })
    assert.equal(page.partial, false)
    assert.ok(page.rows.length <= limit)
    ids.push(...page.rows.map(({ record }) => record.id))
    if (page.next === undefined) return ids
    after = page.next
  }
  throw new assert.AssertionError({ message: `the pages did not end after ${pagesMax}` })
}

export const workCases: readonly StoreCase[] = [
  {
    name: 'lists unknown rows, the oldest first, whatever the size of a page',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const ids: string[] = []
      for (const key of ['a', 'b', 'c', 'd']) {
        ids.push((await rowIn.unknown(harness, store, key)).id)
        await harness.advance(minuteMs)
      }
      await rowIn.completed(harness, store, 'done')
      await own(store, 'running')
      for (const limit of [1, 2, 3, 4, 100]) assert.deepEqual(await idsOf(admin, { kind: 'unknown' }, limit), ids)
    },
  },
  {
    name: 'shows of an unknown row why, for how long, who has taken it, and how much evidence there is',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await harness.advance(5 * minuteMs)
      await acted(admin, id, { kind: 'take' }, { by: by({ by: 'bob' }) })
      const [row] = (await admin.work({ kind: 'unknown', limit: 10 })).rows
      assert.ok(row)
      const { record, notes, cause, waitsForMs, evidence } = row
      assert.deepEqual(
        [record.id, record.outcome, notes.owner, cause, evidence],
        [id, undefined, 'bob', notKnown.errorCode, 0],
      )
      assert.ok(waitsForMs >= 5 * minuteMs && waitsForMs < 10 * minuteMs, `waits for ${waitsForMs} ms`)
      assert.equal(notes.unknown?.cause, notKnown.errorCode)
    },
  },
  {
    name: 'lists by operation, scope, cause, owner and age, and by several of them',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const old = await rowIn.unknown(harness, store, 'old')
      await harness.advance(30 * minuteMs)
      const other = { ...identity('other'), scope: 'tenant-2', operation: 'orders.create' }
      const claim = await own(store, 'other', { identity: other })
      await store.fail(claim, { ...notKnown, errorCode: 'ECONNRESET' })
      await acted(admin, claim.id, { kind: 'take' }, { by: by({ by: 'bob' }) })
      const listed = (filter: Partial<WorkListing>) => idsOf(admin, { kind: 'unknown', ...filter })
      assert.deepEqual(await listed({ operation: 'orders.create' }), [claim.id])
      assert.deepEqual(await listed({ scope: 'tenant-1' }), [old.id])
      assert.deepEqual(await listed({ cause: 'ECONNRESET' }), [claim.id])
      assert.deepEqual(await listed({ owner: 'bob' }), [claim.id])
      assert.deepEqual(await listed({ olderThanMs: 20 * minuteMs }), [old.id])
      assert.deepEqual(await listed({ operation: 'orders.create', scope: 'tenant-1' }), [])
      assert.deepEqual(
        await listed({ operation: 'orders.create', scope: 'tenant-2', owner: 'bob', cause: 'ECONNRESET' }),
        [claim.id],
      )
    },
  },
  {
    name: 'lists parked rows of every state, and rows whose lease is over',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const unknown = await rowIn.unknown(harness, store, 'unknown')
      const failed = await rowIn.failed_retryable(harness, store, 'failed')
      for (const { id } of [unknown, failed]) await acted(admin, id, { kind: 'park' })
      const silent = await own(store, 'silent')
      assert.deepEqual((await idsOf(admin, { kind: 'parked' })).toSorted(), [unknown.id, failed.id].toSorted())
      assert.deepEqual(await idsOf(admin, { kind: 'overdue' }), [])
      await harness.advance(leaseMs + minuteMs)
      assert.deepEqual(await idsOf(admin, { kind: 'overdue' }), [silent.id])
    },
  },
  {
    name: 'lists rows whose lease is over again and again, with those that were granted since, and without those that have ended',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const overdue = () => idsOf(admin, { kind: 'overdue' })
      const first = await own(store, 'first')
      await harness.advance(10 * minuteMs)
      const second = await own(store, 'second')
      for (let looks = 0; looks < 2; looks += 1) assert.deepEqual(await overdue(), [first.id])
      await harness.advance(leaseMs + minuteMs)
      for (let looks = 0; looks < 2; looks += 1) assert.deepEqual(await overdue(), [first.id, second.id])
      const { groups } = await admin.groups('overdue')
      assert.deepEqual(
        groups.map(({ operation, cause, count }) => [operation, cause, count]),
        [['payments.create', 'lease-expired', 2]],
      )
      assert.equal((await admin.sum('overdue')).count, 2)
      await store.fail(first, notKnown)
      assert.deepEqual(await overdue(), [second.id])
      await store.fail(second, notKnown)
      assert.deepEqual(await overdue(), [])
      const third = await own(store, 'third')
      await harness.advance(leaseMs + minuteMs)
      assert.deepEqual(await overdue(), [third.id])
    },
  },
  {
    name: 'groups what waits by operation and cause, with the age of the oldest',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      await rowIn.unknown(harness, store, 'a')
      await harness.advance(10 * minuteMs)
      await rowIn.unknown(harness, store, 'b')
      const claim = await own(store, 'c')
      await store.fail(claim, { ...notKnown, errorCode: 'ECONNRESET' })
      const { groups, partial } = await admin.groups('unknown')
      assert.equal(partial, false)
      assert.deepEqual(
        groups.map(({ operation, cause, count }) => [operation, cause, count]),
        [
          ['payments.create', notKnown.errorCode, 2],
          ['payments.create', 'ECONNRESET', 1],
        ],
      )
      assert.ok((groups[0]?.oldestMs ?? 0) >= 10 * minuteMs)
      const sum = await admin.sum('unknown')
      assert.deepEqual([sum.count, sum.partial, sum.oldestMs >= 10 * minuteMs], [3, false, true])
      assert.deepEqual(await admin.sum('parked'), { count: 0, oldestMs: 0, partial: false })
      assert.deepEqual((await admin.groups('parked')).groups, [])
    },
  },
  {
    name: 'writes a refused attempt as often as it is made, and an act on something else once',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      // What a person types: no store takes U+0000 in a text.
      const given = { ...by({ evidence: 'ticket:\0' }), act: 'redrive', detail: 'outbox 7' }
      for (let times = 0; times < 2; times += 1) {
        await admin.addEntry({ ...given, refused: 'not-permitted' })
        await admin.addEntry(given)
      }
      const entries = await admin.entries({ limit: 10 })
      assert.deepEqual(
        entries.map(({ act, detail, id, refused }) => [act, detail, id, refused]),
        [
          ['redrive', 'outbox 7', undefined, 'not-permitted'],
          ['redrive', 'outbox 7', undefined, undefined],
          ['redrive', 'outbox 7', undefined, 'not-permitted'],
        ],
      )
    },
  },
  {
    name: 'pages through the audit back and forth, by person and by row, with what the library itself wrote',
    async run(harness) {
      const store = await harness.open()
      const admin = adminIn(store)
      const ids: string[] = []
      for (const name of ['ann', 'bob', 'ann']) {
        const { id } = await rowIn.unknown(harness, store, `row ${ids.length}`)
        await acted(admin, id, { kind: 'take' }, { by: by({ by: name }) })
        ids.push(id)
      }
      await store.forget((await rowIn.completed(harness, store, 'done')).id, { by: 'eve', reason: 'asked to' })
      const newest = await admin.entries({ limit: 2 })
      assert.deepEqual(
        newest.map(entry => entry.by),
        ['eve', 'ann'],
      )
      assert.deepEqual([newest[0]?.act, newest[0]?.source], ['forget', undefined])
      const older = await admin.entries({ limit: 10, before: newest.at(-1)?.auditId })
      assert.deepEqual(
        older.map(entry => entry.by),
        ['bob', 'ann'],
      )
      const forward = await admin.entries({ limit: 10, after: older.at(-1)?.auditId })
      assert.deepEqual(
        forward.map(entry => entry.by),
        ['bob', 'ann', 'eve'],
      )
      assert.deepEqual(
        (await admin.entries({ limit: 10, by: 'ann' })).map(entry => entry.id),
        [ids[2], ids[0]],
      )
      assert.deepEqual(
        (await admin.entries({ limit: 10, id: ids[1] })).map(entry => entry.by),
        ['bob'],
      )
    },
  },
  {
    name: 'blanks what people wrote about a tenant that is erased, and leaves who acted and when',
    needs: ['erasure'],
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, { kind: 'note' }, { by: by({ reason: 'spoke to Mrs. Smith', evidence: 'call 7' }) })
      await acted(admin, id, {
        ...{ kind: 'propose', proposalId: '11111111-1111-4111-8111-111111111111', act: 'forget', detail: '{}' },
        expiresInMs: minuteMs,
      })
      const { erasure } = store
      assert.ok(erasure)
      await erasure.mark('tenant-1')
      await erasure.erase({ scope: 'tenant-1', limit: 10 })
      assert.equal((await admin.notes(id))?.note, undefined)
      assert.deepEqual(await admin.proposals({ limit: 10 }), [])
      const entries = await admin.entries({ id, limit: 10 })
      assert.deepEqual(
        entries.map(({ by: who, act, reason, evidence }) => [who, act, reason, evidence]),
        [
          ['ann', 'propose', 'erased', undefined],
          ['ann', 'note', 'erased', undefined],
        ],
      )
    },
  },
]

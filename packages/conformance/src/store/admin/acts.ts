/** An act of a person, its audit entry and the version it relies on: one commit. */
import assert from 'node:assert/strict'
import type { RowAct } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answer, assertState, hourMs, minuteMs, notKnown, own, recordOf, retentionMs, rowIn } from '../fixture.ts'
import { charge, openSteps, ownPhased } from '../steps/fixture.ts'
import { acted, actOn, by, neverHappened, openAdmin, quarantineMs, versionOf } from './fixture.ts'

const happened: RowAct = {
  kind: 'settle',
  verdict: { kind: 'happened', outcome: answer('charged') },
  retentionMs,
  quarantineMs,
}

export const actCases: readonly StoreCase[] = [
  {
    name: 'settles an unknown row as an operator, with its evidence and an entry that names who, why, from where, from and to',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id, fence } = await rowIn.unknown(harness, store, 'a')
      const given = by({ evidence: 'ch_1' })
      const auditId = await acted(admin, id, happened, { by: given })
      await assertState(store, id, 'completed')
      const [entry] = await admin.entries({ id, limit: 10 })
      assert.deepEqual(entry && { ...entry, atMs: 0, detail: '' }, {
        ...{ auditId, atMs: 0, by: 'ann', act: 'settle', id, reason: given.reason, detail: '', source: 'cli' },
        ...{
          requestId: given.requestId,
          evidence: 'ch_1',
          from: 'unknown',
          to: 'completed',
          fence,
          refused: undefined,
        },
      })
      const { evidence, audit } = await store.inspect(id)
      assert.deepEqual([evidence.length, audit.length], [1, 1])
    },
  },
  {
    name: 'does an act once, however often its request is repeated, also after the row has moved or is gone',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.completed(harness, store, 'a')
      const request = { id, act: { kind: 'forget' }, by: by(), expected: await versionOf(admin, id) } as const
      const first = await admin.act(request)
      assert.equal(first.kind, 'acted')
      const again = await admin.act(request)
      assert.deepEqual(again, { ...first, repeated: true })
      assert.equal((await admin.entries({ id, limit: 10 })).length, 1)
      assert.equal((await admin.entries({ id, limit: 10 }))[0]?.to, 'gone')
    },
  },
  {
    name: 'does nothing under a request id that has done another act, or an act on another row',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const [a, b] = [await rowIn.unknown(harness, store, 'a'), await rowIn.unknown(harness, store, 'b')]
      const given = by()
      await acted(admin, a.id, { kind: 'take' }, { by: given })
      assert.deepEqual(await actOn(admin, a.id, { kind: 'park' }, { by: given }), { kind: 'request-reused' })
      assert.deepEqual(await actOn(admin, b.id, { kind: 'take' }, { by: given }), { kind: 'request-reused' })
      assert.deepEqual([(await recordOf(store, a.id)).parked, (await admin.notes(b.id))?.owner], [false, undefined])
      assert.equal((await admin.entries({ limit: 10 })).length, 1)
      assert.equal((await actOn(admin, a.id, { kind: 'take' }, { by: given })).kind, 'acted')
    },
  },
  {
    name: 'tells the second of two operators that the row has moved, and does nothing',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      const expected = await versionOf(admin, id)
      const ends = await Promise.all([
        admin.act({ id, act: happened, by: by({ by: 'ann' }), expected }),
        admin.act({ id, act: happened, by: by({ by: 'bob' }), expected }),
      ])
      assert.deepEqual(ends.map(({ kind }) => kind).toSorted(), ['acted', 'row-moved'])
      assert.equal((await admin.entries({ id, limit: 10 })).length, 1)
    },
  },
  {
    name: 'changes the version with the state, the parked mark and every act that decides, and not with a note, a look-up or a reveal',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const claim = await own(store, 'a')
      const seen = [await versionOf(admin, claim.id)]
      await store.fail(claim, notKnown)
      seen.push(await versionOf(admin, claim.id))
      for (const kind of ['park', 'unpark', 'park', 'unpark', 'take', 'take'] as const) {
        await acted(admin, claim.id, { kind })
        seen.push(await versionOf(admin, claim.id))
      }
      assert.equal(new Set(seen.map(({ fence, version }) => `${fence}.${version}`)).size, seen.length)
      await acted(admin, claim.id, { kind: 'note' })
      await acted(admin, claim.id, { kind: 'reveal' })
      await acted(admin, claim.id, { kind: 'look-up', notWithinMs: 0 })
      assert.deepEqual(await versionOf(admin, claim.id), seen.at(-1))
    },
  },
  {
    name: 'refuses "never happened" inside the quarantine, and takes it after it',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      const early = await actOn(admin, id, neverHappened)
      assert.ok(early.kind === 'quarantine-not-over' && early.leftMs > 0 && early.leftMs <= quarantineMs)
      assert.deepEqual((await store.inspect(id)).evidence, [])
      await harness.advance(quarantineMs + minuteMs)
      await acted(admin, id, neverHappened)
      await assertState(store, id, 'failed_retryable')
    },
  },
  {
    name: 'takes "never happened" at once where the provider has denied it',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, { ...neverHappened, quarantineMs: 0 })
      await assertState(store, id, 'failed_retryable')
    },
  },
  {
    name: 'settles the open effect of phased work, and says what the row needs otherwise',
    needs: ['steps'],
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const steps = await openSteps(harness)
      const claim = await ownPhased(store, 'a')
      await steps.steps.openIntent(claim, charge(0), 10 * minuteMs)
      await store.fail(claim, notKnown)
      const wrong = await actOn(admin, claim.id, happened)
      assert.deepEqual(wrong, { kind: 'wrong-verdict', needs: 'value', effect: charge(0).name })
      const verdict = { kind: 'happened', value: '{"id":"ch_1"}' } as const
      await acted(admin, claim.id, { kind: 'settle', verdict, retentionMs, quarantineMs })
      await assertState(store, claim.id, 'pending')
    },
  },
  {
    name: 'parks what is pending, may be retried or is unknown, and nothing that runs or has ended',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      for (const from of ['failed_retryable', 'unknown'] as const) {
        const { id } = await rowIn[from](harness, store, from)
        await acted(admin, id, { kind: 'park' })
        assert.equal((await recordOf(store, id)).parked, true)
        assert.deepEqual(await actOn(admin, id, { kind: 'park' }), { kind: 'wrong-state', state: from })
        assert.equal(
          (await store.list({ parked: true, limit: 10 })).records.some(record => record.id === id),
          true,
        )
        await acted(admin, id, { kind: 'unpark' })
        assert.equal((await recordOf(store, id)).parked, false)
      }
      for (const from of ['in_progress', 'completed'] as const) {
        const { id } = await rowIn[from](harness, store, from)
        assert.deepEqual(await actOn(admin, id, { kind: 'park' }), { kind: 'wrong-state', state: from })
        assert.deepEqual(await actOn(admin, id, { kind: 'unpark' }), { kind: 'wrong-state', state: from })
      }
    },
  },
  {
    name: 'grants no look-up of a row that an operator has parked, and takes none that was under way',
    needs: ['reconciliation'],
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { reconciliation } = store
      assert.ok(reconciliation)
      const { id } = await rowIn.unknown(harness, store, 'a')
      const asked = { operation: 'payments.create', firstInMs: 0, leaseMs: minuteMs, limit: 10 }
      const [lookup] = await reconciliation.lookups(asked)
      assert.ok(lookup)
      await acted(admin, id, { kind: 'park' })
      assert.equal(await reconciliation.postpone(lookup, 0), 'claim-lost')
      await harness.advance(hourMs)
      assert.deepEqual(await reconciliation.lookups(asked), [])
    },
  },
  {
    name: 'makes the next look-up of an unknown row due at once, at most so often, and not of a parked row or another',
    needs: ['reconciliation'],
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { reconciliation } = store
      assert.ok(reconciliation)
      const { id } = await rowIn.unknown(harness, store, 'a')
      const asked = { operation: 'payments.create', firstInMs: hourMs, leaseMs: minuteMs, limit: 10 }
      assert.deepEqual(await reconciliation.lookups(asked), [])
      const lookUp = { kind: 'look-up', notWithinMs: 5 * minuteMs } as const
      await acted(admin, id, lookUp)
      assert.deepEqual(
        (await reconciliation.lookups(asked)).map(each => each.id),
        [id],
      )
      const soon = await actOn(admin, id, lookUp)
      assert.ok(soon.kind === 'too-soon' && soon.leftMs > 0)
      await harness.advance(6 * minuteMs)
      await acted(admin, id, lookUp)
      const done = await rowIn.completed(harness, store, 'done')
      assert.deepEqual(await actOn(admin, done.id, lookUp), { kind: 'wrong-state', state: 'completed' })
    },
  },
  {
    name: 'remembers who has taken a row and the last note, and forgets both with the row',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.completed(harness, store, 'a')
      await acted(admin, id, { kind: 'take' }, { by: by({ by: 'bob' }) })
      await acted(admin, id, { kind: 'note' }, { by: by({ reason: 'asked the provider' }) })
      const notes = await admin.notes(id)
      assert.deepEqual([notes?.owner, notes?.note], ['bob', 'asked the provider'])
      await acted(admin, id, { kind: 'forget' })
      assert.equal(await admin.notes(id), undefined)
      const next = await own(store, 'a')
      assert.equal((await admin.notes(next.id))?.owner, undefined)
    },
  },
  {
    name: 'answers not-found about a row that is not there',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const id = '00000000-0000-4000-8000-000000000000'
      const expected = { fence: 1, version: 0 }
      assert.deepEqual(await admin.act({ id, act: { kind: 'take' }, by: by(), expected }), { kind: 'not-found' })
      assert.equal(await admin.notes(id), undefined)
    },
  },
]

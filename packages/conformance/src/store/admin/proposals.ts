/** Acts that wait for a second person, and acts on many rows. */
import assert from 'node:assert/strict'
import type { AdminRecords, RowAct } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { assertState, hourMs, minuteMs, rowIn, uuidOf } from '../fixture.ts'
import { acted, actOn, by, neverHappened, openAdmin, quarantineMs, versionOf } from './fixture.ts'

const proposalId = uuidOf('proposal')

function proposing(over: Partial<Extract<RowAct, { kind: 'propose' }>> = {}): RowAct {
  return {
    kind: 'propose',
    proposalId,
    act: 'settle.did_not_happen',
    detail: '{"a":1}',
    expiresInMs: 24 * hourMs,
    ...over,
  }
}

async function stateOf(admin: AdminRecords, id = proposalId): Promise<string | undefined> {
  return (await admin.proposal(id))?.state
}

const bulkId = uuidOf('bulk')

export const proposalCases: readonly StoreCase[] = [
  {
    name: 'keeps a proposal with what it would do, bound to the version that the row has then',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, proposing(), { by: by({ evidence: 'ticket:1' }) })
      const found = await admin.proposal(proposalId)
      assert.ok(found)
      const { atMs: _at, expiresInMs, ...rest } = found
      assert.deepEqual(rest, {
        ...{ proposalId, id, scope: 'tenant-1', operation: 'payments.create', act: 'settle.did_not_happen' },
        ...{ detail: '{"a":1}', by: 'ann', reason: 'the provider says so', evidence: 'ticket:1' },
        ...{ expected: await versionOf(admin, id), state: 'open', decidedBy: undefined },
      })
      assert.ok(expiresInMs > 23 * hourMs && expiresInMs <= 24 * hourMs)
      assert.deepEqual(
        (await admin.proposals({ limit: 10 })).map(each => each.proposalId),
        [proposalId],
      )
    },
  },
  {
    name: 'closes a proposal with the act that carries it out, once',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, proposing())
      await harness.advance(quarantineMs + minuteMs)
      await acted(admin, id, neverHappened, { by: by({ by: 'bob' }), proposalId })
      await assertState(store, id, 'failed_retryable')
      const closed = await admin.proposal(proposalId)
      assert.deepEqual([closed?.state, closed?.decidedBy, closed?.detail], ['approved', 'bob', ''])
      assert.deepEqual(await actOn(admin, id, { kind: 'take' }, { proposalId }), { kind: 'proposal-closed' })
    },
  },
  {
    name: 'leaves a proposal open whose act is refused',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, proposing())
      assert.equal((await actOn(admin, id, neverHappened, { proposalId })).kind, 'quarantine-not-over')
      assert.equal(await stateOf(admin), 'open')
    },
  },
  {
    name: 'rejects an open proposal with its entry, and none that is closed or has expired',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, proposing())
      const entry = { ...by({ by: 'bob', reason: 'it did happen' }), act: 'reject', id, scope: 'tenant-1', detail: '' }
      assert.equal(await admin.closeProposal(proposalId, 'rejected', entry), true)
      assert.equal(await admin.closeProposal(proposalId, 'void', { ...entry, ...by() }), false)
      assert.equal(await stateOf(admin), 'rejected')
      assert.deepEqual(
        (await admin.entries({ id, limit: 1 })).map(({ act, reason }) => [act, reason]),
        [['reject', 'it did happen']],
      )
      const late = uuidOf('late')
      await acted(admin, id, proposing({ proposalId: late }))
      await harness.advance(25 * hourMs)
      assert.equal(await admin.closeProposal(late, 'rejected', { ...entry, ...by() }), false)
      assert.ok(((await admin.proposal(late))?.expiresInMs ?? 1) <= 0)
      assert.deepEqual(await actOn(admin, id, { kind: 'take' }, { proposalId: late }), { kind: 'proposal-closed' })
    },
  },
  {
    name: 'lists open proposals before those that are closed, the newest first',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      const ids = ['one', 'two', 'three'].map(uuidOf)
      for (const each of ids) await acted(admin, id, proposing({ proposalId: each }))
      await admin.closeProposal(ids[2] ?? '', 'void', { ...by(), act: 'void', detail: '' })
      assert.deepEqual(
        (await admin.proposals({ limit: 10 })).map(each => each.proposalId),
        [ids[1], ids[0], ids[2]],
      )
      assert.equal((await admin.proposals({ limit: 2 })).length, 2)
    },
  },
  {
    name: 'keeps the rows of a plan in their order, and the first result of each',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const rows = [
        { id: uuidOf('r 0'), expected: { fence: 1, version: 8 }, detail: '{"n":0}' },
        { id: uuidOf('r 1'), expected: undefined, detail: undefined },
        { id: 'position 7', expected: undefined, detail: undefined },
      ]
      const plan = { bulkId, act: 'take', by: 'ann', reason: 'outage', detail: '{}', validInMs: hourMs, rows }
      await admin.planBulk(plan, { ...by(), act: 'bulk.plan', detail: bulkId })
      for (const result of ['done', 'not-found']) await admin.setBulkResult(bulkId, 1, result)
      assert.deepEqual(
        await admin.bulkRows(bulkId, { limit: 10 }),
        rows.map((row, at) => ({ ...row, at, result: at === 1 ? 'done' : undefined })),
      )
      assert.deepEqual(
        (await admin.bulkRows(bulkId, { limit: 1, after: 1 })).map(({ at }) => at),
        [2],
      )
      const found = await admin.bulk(bulkId)
      assert.deepEqual([found?.state, found?.total, found?.finished, found?.by], ['planned', 3, 1, 'ann'])
      assert.equal(await admin.bulk(uuidOf('none')), undefined)
      assert.equal((await admin.entries({ limit: 1 }))[0]?.act, 'bulk.plan')
    },
  },
  {
    name: 'moves a plan only from the states that were named',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const plan = { bulkId, act: 'take', by: 'ann', reason: 'outage', detail: '{}', validInMs: hourMs, rows: [] }
      await admin.planBulk(plan, { ...by(), act: 'bulk.plan', detail: bulkId })
      assert.equal(await admin.moveBulk(bulkId, { from: ['running'], to: 'done' }), false)
      assert.equal(await admin.moveBulk(bulkId, { from: ['planned', 'running'], to: 'running' }), true)
      assert.equal(await admin.moveBulk(bulkId, { from: ['planned'], to: 'cancelled' }), false)
      assert.equal((await admin.bulk(bulkId))?.state, 'running')
    },
  },
  {
    name: 'writes the entry of a move of a plan with it, and none where it does not move',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const plan = { bulkId, act: 'take', by: 'ann', reason: 'outage', detail: '{}', validInMs: hourMs, rows: [] }
      await admin.planBulk(plan, { ...by(), act: 'bulk.plan', detail: bulkId })
      const entry = () => ({ ...by(), act: 'bulk.cancel', detail: bulkId })
      assert.equal(await admin.moveBulk(bulkId, { from: ['running'], to: 'cancelled' }, entry()), false)
      assert.equal(await admin.moveBulk(bulkId, { from: ['planned'], to: 'cancelled' }, entry()), true)
      assert.deepEqual(
        (await admin.entries({ limit: 10 })).map(({ act, detail }) => [act, detail]),
        [
          ['bulk.cancel', bulkId],
          ['bulk.plan', bulkId],
        ],
      )
    },
  },
]

/** A parked message that an operator skips: never delivered, nobody behind it waits, and the audit says so from the same commit on. */
import assert from 'node:assert/strict'
import type { AdminRecords, OperatorEntry, SkipResult } from 'latchkey'
import type { StoreHarness } from '../store-harness.ts'
import { adminIn, by } from '../store/admin/fixture.ts'
import {
  act,
  append,
  delivered,
  drain,
  failed,
  hourMs,
  message,
  messagesOf,
  minuteMs,
  openFixture,
  type OutboxCase,
  type OutboxFixture,
} from './fixture.ts'

interface SkipFixture extends OutboxFixture {
  readonly admin: AdminRecords
}

async function openSkip(harness: StoreHarness): Promise<SkipFixture> {
  return { ...(await openFixture(harness)), admin: adminIn(await harness.open()) }
}

const parkOnly = (dedupId: string) => ({
  consume: (each: Parameters<typeof failed>[0]) => (each.dedupId === dedupId ? failed(each) : delivered(each)),
})

/** The position of the message that is parked by it. */
async function park(fixture: OutboxFixture, dedupId: string): Promise<string> {
  await drain(fixture, parkOnly(dedupId))
  const parked = (await fixture.outbox.parked({ limit: 100 })).find(each => each.dedupId === dedupId)
  assert.ok(parked, `expected ${dedupId} to be parked`)
  return parked.position
}

const notFound: SkipResult = { kind: 'not-found' }

function entriesOf(admin: AdminRecords): Promise<readonly OperatorEntry[]> {
  return admin.entries({ limit: 100 })
}

export const skipCases: readonly OutboxCase[] = [
  {
    name: 'skips a parked message: it is never delivered, and those behind it are, in order',
    needs: 'admin',
    async run(harness) {
      const fixture = await openSkip(harness)
      await append(fixture, messagesOf('a', 4))
      const position = await park(fixture, 'a2')
      assert.deepEqual(await drain(fixture), [])
      assert.equal((await fixture.admin.skip({ position, by: by() })).kind, 'acted')
      await append(fixture, [message('a5', { aggregate: 'a' })])
      assert.deepEqual(await drain(fixture), ['a3', 'a4', 'a5'])
      await harness.advance(10 * hourMs)
      assert.deepEqual(await drain(fixture), [])
      const { waiting, parked } = await fixture.outbox.lag()
      assert.deepEqual([waiting, parked], [0, 0])
      assert.deepEqual(await fixture.outbox.parked({ limit: 10 }), [])
      assert.equal(await fixture.outbox.downstreamId(position), undefined)
      assert.equal(await fixture.outbox.prune({ limit: 10, keepMs: hourMs }), 5)
    },
  },
  {
    name: 'names in the entry of a skip who, why, from where, the topic and the id that the consumer misses',
    needs: 'admin',
    async run(harness) {
      const fixture = await openSkip(harness)
      await append(fixture, [message('lost', { aggregate: 'order-7', topic: 'receipts' })])
      const position = await park(fixture, 'lost')
      const given = by({ by: 'kim', reason: 'the order is gone, billing knows' })
      const skipped = await fixture.admin.skip({ position, by: given })
      assert.ok(skipped.kind === 'acted' && !skipped.repeated)
      const [entry, ...more] = await entriesOf(fixture.admin)
      assert.equal(more.length, 0)
      assert.deepEqual(entry && { ...entry, atMs: 0, detail: '' }, {
        ...{ auditId: skipped.auditId, atMs: 0, by: 'kim', act: 'outbox.skip', id: undefined, detail: '' },
        ...{ reason: given.reason, source: 'cli', requestId: given.requestId, evidence: undefined },
        ...{ from: undefined, to: undefined, fence: undefined, refused: undefined },
      })
      // An aggregate may be sealed, and is then not the word that was appended.
      assert.match(entry?.detail ?? '', new RegExp(`^message ${position} to receipts of aggregate .+, dedup id lost$`))
    },
  },
  {
    name: 'skips nothing that is not parked: new, due again, redriven, delivered, skipped or never there; and writes no entry',
    needs: 'admin',
    async run(harness) {
      const fixture = await openSkip(harness)
      const { admin, outbox } = fixture
      await append(fixture, [message('m')])
      const refuse = async (position: string) => {
        assert.deepEqual(await admin.skip({ position, by: by() }), notFound)
        assert.deepEqual(await entriesOf(admin), [])
      }
      for (const position of ['1', '999', '', 'nobody', "1'; --"]) await refuse(position)
      await drain(fixture, { consume: each => failed(each, { dueInMs: minuteMs }) })
      await refuse('1')
      await harness.advance(hourMs)
      const position = await park(fixture, 'm')
      await outbox.redrive(position, act)
      await refuse(position)
      assert.deepEqual(await drain(fixture), ['m'])
      await refuse(position)
      await append(fixture, [message('n')])
      const second = await park(fixture, 'n')
      await admin.skip({ position: second, by: by() })
      assert.deepEqual(await admin.skip({ position: second, by: by() }), notFound)
      assert.deepEqual(await outbox.redrive(second, act), { kind: 'not-found' })
      assert.equal((await entriesOf(admin)).length, 1)
    },
  },
  {
    name: 'skips once, however often the request is repeated',
    needs: 'admin',
    async run(harness) {
      const fixture = await openSkip(harness)
      await append(fixture, [message('m')])
      const request = { position: await park(fixture, 'm'), by: by() }
      const ends = await Promise.all([fixture.admin.skip(request), fixture.admin.skip(request)])
      ends.push(await fixture.admin.skip(request))
      const auditIds = ends.map(end => (end.kind === 'acted' ? end.auditId : end.kind))
      assert.equal(new Set(auditIds).size, 1)
      assert.equal(ends.filter(end => end.kind === 'acted' && !end.repeated).length, 1)
      assert.equal((await entriesOf(fixture.admin)).length, 1)
    },
  },
  {
    name: 'does one of the two when a message is skipped and redriven at once',
    needs: 'admin',
    async run(harness) {
      const fixture = await openSkip(harness)
      for (let turn = 0; turn < 10; turn += 1) {
        await append(fixture, [message(`m${turn}`)])
        const position = await park(fixture, `m${turn}`)
        const [skipped, redriven] = await Promise.all([
          fixture.admin.skip({ position, by: by() }),
          fixture.outbox.redrive(position, act),
        ])
        assert.notEqual(skipped.kind === 'acted', redriven.kind === 'redriven')
        assert.deepEqual(await drain(fixture), skipped.kind === 'acted' ? [] : [`m${turn}`])
      }
    },
  },
  {
    name: 'wakes a long line behind a skipped message to its end',
    needs: 'admin',
    async run(harness) {
      const fixture = await openSkip(harness)
      await append(fixture, messagesOf('a', 250))
      const position = await park(fixture, 'a1')
      await fixture.admin.skip({ position, by: by() })
      const rest = messagesOf('a', 250).map(({ dedupId }) => dedupId)
      assert.deepEqual(await drain(fixture, { limit: 50 }), rest.slice(1))
    },
  },
]

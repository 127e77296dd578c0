/** A store may read the next batch while it settles the current one; a store without `ahead` passes. */
import assert from 'node:assert/strict'
import type { Batch, LaneLease } from 'latchkey'
import { append, batchOf, dedupIds, delivered, failed, leased, leaseMs, messagesOf } from './fixture.ts'
import { openFixture, type OutboxFixture, type OutboxCase } from './fixture.ts'

const keep = { kind: 'keep', leaseMs } as const

async function settleDelivered({ outbox }: OutboxFixture, lease: LaneLease, batch: Batch): Promise<void> {
  const ends = batch.messages.map(each => delivered(each))
  assert.equal(await outbox.settle(lease, { batch, ends, then: keep }), 'written')
}

function aheadOf({ outbox }: OutboxFixture, lease: LaneLease, { through }: Batch): Promise<Batch | undefined> {
  assert.ok(through, 'the batch moves the cursor')
  return outbox.ahead?.(lease, { limit: 2, after: through }) ?? Promise.resolve(undefined)
}

export const aheadCases: readonly OutboxCase[] = [
  {
    name: 'reads ahead what it reads when the batch before is settled, before and after that',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 5))
      const lease = await leased(fixture)
      const first = await batchOf(fixture, lease, 2)
      const before = await aheadOf(fixture, lease, first)
      await settleDelivered(fixture, lease, first)
      const after = await aheadOf(fixture, lease, first)
      const next = await batchOf(fixture, lease, 2)
      assert.deepEqual(dedupIds(next.messages), ['a3', 'a4'])
      if (fixture.outbox.ahead !== undefined) assert.deepEqual([before, after], [next, next])
      await settleDelivered(fixture, lease, next)
      assert.deepEqual(dedupIds((await batchOf(fixture, lease, 2)).messages), ['a5'])
    },
  },
  {
    name: 'reads nothing ahead while a message from aside is due, and nothing for a relay that lost its lane',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      const lease = await leased(fixture)
      const first = await batchOf(fixture, lease, 1)
      const [message] = first.messages
      assert.ok(message)
      const ends = [failed(message, { dueInMs: 0 })]
      assert.equal(await fixture.outbox.settle(lease, { batch: first, ends, then: keep }), 'written')
      assert.equal(await aheadOf(fixture, lease, first), undefined)
      await harness.advance(leaseMs + 1_000)
      const owner = await leased(fixture)
      assert.equal(await aheadOf(fixture, lease, first), undefined)
      const refused = await fixture.outbox.settle(lease, { batch: first, ends: [delivered(message)], then: keep })
      assert.equal(refused, 'lease-lost')
      assert.deepEqual(dedupIds((await batchOf(fixture, owner, 2)).messages), ['a1'])
    },
  },
]

/** A message that kills its relay is found, counted and set apart; the others are delivered. */
import assert from 'node:assert/strict'
import {
  append,
  batchOf,
  dedupIds,
  delivered,
  drain,
  failed,
  leased,
  leaseMs,
  messagesOf,
  openFixture,
} from './fixture.ts'
import type { OutboxFixture, OutboxCase } from './fixture.ts'
import type { StoreHarness } from '../store-harness.ts'

const release = { kind: 'release' } as const

/** A relay that takes a lane and a batch and then dies. */
async function die(harness: StoreHarness, fixture: OutboxFixture): Promise<readonly string[]> {
  const { messages } = await batchOf(fixture, await leased(fixture))
  await harness.advance(leaseMs + 1_000)
  return dedupIds(messages)
}

export const suspectCases: readonly OutboxCase[] = [
  {
    name: 'suspects nobody when one relay died',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      await die(harness, fixture)
      assert.equal((await batchOf(fixture, await leased(fixture))).messages.length, 3)
    },
  },
  {
    name: 'tries the messages one by one when relays died in a row, and forgets the suspicion when all is well',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      await die(harness, fixture)
      await die(harness, fixture)
      const lease = await leased(fixture)
      for (const expected of ['a1', 'a2', 'a3']) {
        const batch = await batchOf(fixture, lease)
        assert.deepEqual(dedupIds(batch.messages), [expected])
        const then = expected === 'a3' ? release : ({ kind: 'keep', leaseMs } as const)
        await fixture.outbox.settle(lease, { batch, ends: batch.messages.map(each => delivered(each)), then })
      }
      await append(fixture, messagesOf('b', 3))
      assert.equal((await batchOf(fixture, await leased(fixture))).messages.length, 3)
    },
  },
  {
    name: 'counts the crashes of the one that kills, while the others are delivered, until it is parked',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [...messagesOf('poison', 2), ...messagesOf('p', 2)])
      const kills: number[] = []
      const done: string[] = []
      for (let turn = 0; turn < 20 && kills.length < 4; turn += 1) {
        const lease = await fixture.outbox.leaseLane({ leaseId: `turn ${turn}`, leaseMs })
        if (lease === undefined) {
          await harness.advance(leaseMs)
          continue
        }
        const batch = await batchOf(fixture, lease)
        const poison = batch.messages.find(each => each.dedupId === 'poison1')
        if (poison !== undefined && (batch.messages.length > 1 || poison.crashes < 2)) {
          if (batch.messages.length === 1) kills.push(poison.crashes)
          await harness.advance(leaseMs + 1_000)
          continue
        }
        const ends = batch.messages.map(each => (each === poison ? failed(each, { error: 'poison' }) : delivered(each)))
        if (poison !== undefined) kills.push(poison.crashes)
        done.push(...dedupIds(batch.messages.filter(each => each !== poison)))
        await fixture.outbox.settle(lease, { batch, ends, then: release })
        if (poison !== undefined) break
      }
      assert.deepEqual(kills, [0, 1, 2])
      done.push(...(await drain(fixture)))
      assert.deepEqual([...done].sort(), ['p1', 'p2'])
      const parked = await fixture.outbox.parked({ limit: 10 })
      assert.deepEqual(
        parked.map(each => [each.dedupId, each.crashes, each.cause]),
        [['poison1', 3, 'poison']],
      )
      assert.equal((await fixture.outbox.lag()).waiting, 1)
    },
  },
]

/** The lanes one by one, as operators see them. */
import assert from 'node:assert/strict'
import type { LaneState } from 'latchkey'
import type { StoreHarness } from '../store-harness.ts'
import { adminIn } from '../store/admin/fixture.ts'
import {
  append,
  batchOf,
  delivered,
  drain,
  failed,
  hourMs,
  leased,
  leaseMs,
  message,
  messagesOf,
  minuteMs,
  openFixture,
  type Consumer,
  type OutboxCase,
} from './fixture.ts'

async function lanesIn(harness: StoreHarness): Promise<readonly LaneState[]> {
  const { lanes, partial } = await adminIn(await harness.open()).lanes()
  assert.equal(partial, false)
  return lanes
}

const exactly = (count: number) => ({ count, more: false })
const overThousand = { count: 1_000, more: true }

const refuse =
  (...dedupIds: readonly string[]): Consumer =>
  each =>
    dedupIds.includes(each.dedupId) ? failed(each) : delivered(each)

export const laneCases: readonly OutboxCase[] = [
  {
    name: 'shows no lane that has nothing, and none whose messages were delivered',
    needs: 'admin',
    async run(harness) {
      const fixture = await openFixture(harness)
      assert.deepEqual(await lanesIn(harness), [])
      await append(fixture, messagesOf('a', 3))
      await drain(fixture)
      assert.deepEqual(await lanesIn(harness), [])
    },
  },
  {
    name: 'shows of a lane what waits, what is parked, what waits behind that, and since when',
    needs: 'admin',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 4))
      await drain(fixture, { consume: refuse('a1') })
      await harness.advance(hourMs)
      await append(fixture, [message('a5', { aggregate: 'a' })])
      const [lane, ...more] = await lanesIn(harness)
      assert.ok(lane)
      assert.equal(more.length, 0)
      const { oldestMs, lane: number, ...rest } = lane
      assert.equal(number, (await fixture.outbox.parked({ limit: 1 }))[0]?.lane)
      // The last one is behind the parked one, too, as soon as a relay has seen it.
      assert.deepEqual(rest, { waiting: exactly(4), parked: exactly(1), behind: exactly(3), lease: undefined })
      assert.ok(oldestMs >= hourMs && oldestMs < 2 * hourMs, `the oldest waits for ${oldestMs} ms`)
      await drain(fixture)
      assert.deepEqual((await lanesIn(harness))[0]?.behind, exactly(4))
    },
  },
  {
    name: 'counts nobody as behind a parked message who waits for another, or for nobody',
    needs: 'admin',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [...messagesOf('a', 3), message('alone')])
      const later: Consumer = each => failed(each, { dueInMs: hourMs })
      await drain(fixture, { consume: later })
      const lanes = await lanesIn(harness)
      assert.equal(
        lanes.reduce((sum, { waiting }) => sum + waiting.count, 0),
        4,
      )
      assert.ok(lanes.every(({ behind, parked }) => behind.count === 0 && parked.count === 0))
      assert.ok(lanes.every(({ behind, waiting, parked }) => !behind.more && !waiting.more && !parked.more))
    },
  },
  {
    name: 'adds up over the lanes to what the outbox has in all',
    needs: 'admin',
    async run(harness) {
      const fixture = await openFixture(harness)
      const groups = ['a', 'b', 'c', 'd', 'e', 'f']
      await append(
        fixture,
        groups.flatMap(name => messagesOf(name, 3)),
      )
      await drain(fixture, { consume: refuse('a1', 'c2', 'f3') })
      const lanes = await lanesIn(harness)
      const { waiting, parked } = await fixture.outbox.lag()
      const sum = (of: (lane: LaneState) => number) => lanes.reduce((all, lane) => all + of(lane), 0)
      assert.deepEqual([sum(lane => lane.waiting.count), sum(lane => lane.parked.count)], [waiting, parked])
      assert.deepEqual([waiting, parked, sum(lane => lane.behind.count)], [3, 3, 3])
      const numbers = lanes.map(({ lane }) => lane)
      assert.deepEqual(
        numbers,
        [...new Set(numbers)].toSorted((one, other) => one - other),
      )
    },
  },
  {
    name: 'shows who holds a lane and for how long, and that the time of a dead relay is over',
    needs: 'admin',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('m')])
      const lease = await leased(fixture)
      const [held] = await lanesIn(harness)
      assert.deepEqual([held?.lane, held?.lease?.by], [lease.lane, lease.leaseId])
      const leftMs = held?.lease?.leftMs ?? 0
      assert.ok(leftMs > 0 && leftMs <= leaseMs, `the lease lasts for ${leftMs} ms`)
      await harness.advance(leaseMs + minuteMs)
      const [over] = await lanesIn(harness)
      assert.ok(over?.lease !== undefined && over.lease.leftMs <= 0)
      const next = await leased(fixture)
      const batch = await batchOf(fixture, next)
      const ends = batch.messages.map(each => delivered(each))
      await fixture.outbox.settle(next, { batch, ends, then: { kind: 'keep', leaseMs } })
      assert.deepEqual(
        (await lanesIn(harness)).map(({ waiting, lease: holder }) => [waiting.count, holder?.by]),
        [[0, next.leaseId]],
      )
      await fixture.outbox.releaseLane(next)
      assert.deepEqual(await lanesIn(harness), [])
    },
  },
  {
    name: 'counts to a thousand, and says that there are more',
    needs: 'admin',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 1_003))
      assert.deepEqual((await lanesIn(harness))[0]?.waiting, overThousand)
      await drain(fixture, { consume: refuse('a1'), limit: 200 })
      const [lane] = await lanesIn(harness)
      assert.deepEqual([lane?.waiting, lane?.behind, lane?.parked], [overThousand, overThousand, exactly(1)])
    },
  },
]

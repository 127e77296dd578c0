/** One relay at a time works on a lane, and a replaced relay changes nothing. */
import assert from 'node:assert/strict'
import type { Batch } from 'latchkey'
import { append, batchOf, dedupIds, delivered, drain, failed, leased, leaseMs, message, messagesOf } from './fixture.ts'
import { newLeaseId, openFixture, type OutboxCase } from './fixture.ts'

const release = { kind: 'release' } as const

/** Without times: a harness may have moved them. */
function plain({ messages, behind, through }: Batch): unknown {
  const names = messages.map(each => [each.position, each.dedupId, each.attempts, each.crashes])
  return { names, behind, through }
}

export const leaseCases: readonly OutboxCase[] = [
  {
    name: 'leases no lane that has nothing to do, and none that is held',
    async run(harness) {
      const fixture = await openFixture(harness)
      const other = await openFixture(harness)
      const ask = () => other.outbox.leaseLane({ leaseId: newLeaseId(), leaseMs })
      assert.equal(await ask(), undefined)
      await append(fixture, [message('a', { aggregate: 'a' })])
      const lease = await leased(fixture)
      assert.equal(await ask(), undefined)
      assert.equal(await fixture.outbox.releaseLane(lease), 'written')
      const next = await ask()
      assert.deepEqual(next && [next.lane, next.fence], [lease.lane, lease.fence + 1])
    },
  },
  {
    name: 'leases a lane to one of many relays that ask at once',
    async run(harness) {
      const benches = await Promise.all([openFixture(harness), openFixture(harness)])
      await append(benches[0], [message('a', { aggregate: 'a' })])
      const asked = Array.from({ length: 8 }, (_, turn) =>
        benches[turn % 2 === 0 ? 0 : 1].outbox.leaseLane({ leaseId: newLeaseId(), leaseMs }),
      )
      const leases = (await Promise.all(asked)).filter(lease => lease !== undefined)
      assert.equal(leases.length, 1)
    },
  },
  {
    name: 'gives a dead lane to the next relay, which sees the same messages with the same dedup ids',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      const dead = await leased(fixture)
      const before = await batchOf(fixture, dead)
      await harness.advance(leaseMs + 1_000)
      const next = await leased(fixture)
      assert.deepEqual([next.lane, next.fence], [dead.lane, dead.fence + 1])
      const again = await batchOf(fixture, next)
      assert.deepEqual(dedupIds(again.messages), ['a1', 'a2', 'a3'])
      assert.deepEqual(plain(again), plain(before))
    },
  },
  {
    name: 'refuses everything a relay writes that lost its lane',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      const stale = await leased(fixture)
      const batch = await batchOf(fixture, stale)
      await harness.advance(leaseMs + 1_000)
      const owner = await leased(fixture)
      const [first, ...rest] = batch.messages
      assert.ok(first)
      const ends = [failed(first), ...rest.map(each => delivered(each, 'stale'))]
      assert.equal(await fixture.outbox.settle(stale, { batch, ends, then: release }), 'lease-lost')
      assert.equal(await fixture.outbox.renewLane(stale, leaseMs), 'lease-lost')
      assert.equal(await fixture.outbox.releaseLane(stale), 'lease-lost')
      assert.equal(await fixture.outbox.next(stale, { limit: 10 }), 'lease-lost')
      const other = { ...owner, leaseId: newLeaseId() }
      assert.equal(await fixture.outbox.settle(other, { batch, ends, then: release }), 'lease-lost')
      assert.equal((await fixture.outbox.lag()).waiting, 3)
      assert.deepEqual(await fixture.outbox.parked({ limit: 10 }), [])
      assert.equal(await fixture.outbox.downstreamId(rest[0]?.position ?? ''), undefined)
      assert.deepEqual(plain(await batchOf(fixture, owner)), plain(batch))
    },
  },
  {
    name: 'lets an overdue relay settle as long as nobody replaced it, and a renewed one keep its lane',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 2))
      const lease = await leased(fixture)
      const batch = await batchOf(fixture, lease, 1)
      await harness.advance(leaseMs / 2)
      assert.equal(await fixture.outbox.renewLane(lease, leaseMs), 'written')
      await harness.advance(leaseMs * 0.75)
      assert.equal(await fixture.outbox.leaseLane({ leaseId: newLeaseId(), leaseMs }), undefined)
      await harness.advance(leaseMs)
      const ends = batch.messages.map(each => delivered(each))
      const then = { kind: 'keep', leaseMs } as const
      assert.equal(await fixture.outbox.settle(lease, { batch, ends, then }), 'written')
      assert.equal(await fixture.outbox.leaseLane({ leaseId: newLeaseId(), leaseMs }), undefined)
      assert.deepEqual(dedupIds((await batchOf(fixture, lease)).messages), ['a2'])
    },
  },
  {
    name: 'records what the downstream calls a message with the commit that counts it as done',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 2))
      const lease = await leased(fixture)
      const batch = await batchOf(fixture, lease)
      const ends = batch.messages.map(each => delivered(each, each.dedupId === 'a1' ? 'evt_\u00e9' : undefined))
      assert.equal(await fixture.outbox.settle(lease, { batch, ends, then: release }), 'written')
      const [named, nameless] = batch.messages.map(each => each.position)
      assert.equal(await fixture.outbox.downstreamId(named ?? ''), 'evt_\u00e9')
      assert.equal(await fixture.outbox.downstreamId(nameless ?? ''), undefined)
      assert.deepEqual(await drain(fixture), [])
    },
  },
  {
    name: 'serves the lane first that has waited longest',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(
        fixture,
        Array.from({ length: 60 }, (_, index) => message(`m${index}`)),
      )
      const served = new Set<number>()
      for (let turn = 0; turn < fixture.outbox.lanes; turn += 1) {
        const lease = await leased(fixture)
        served.add(lease.lane)
        const batch = await batchOf(fixture, lease, 1)
        await fixture.outbox.settle(lease, { batch, ends: batch.messages.map(each => delivered(each)), then: release })
      }
      assert.equal(served.size, fixture.outbox.lanes)
    },
  },
]

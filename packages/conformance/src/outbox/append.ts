/** A message exists exactly when its transaction committed, unchanged and in its order. */
import assert from 'node:assert/strict'
import {
  append,
  appendOnly,
  batchOf,
  drain,
  leased,
  message,
  messagesOf,
  openFixture,
  untilReadable,
} from './fixture.ts'
import type { OutboxFixture, OutboxCase } from './fixture.ts'

/** A transaction that stays open until the case ends it. */
async function openTransaction({ transactor }: OutboxFixture): Promise<{ tx: unknown; commit(): Promise<void> }> {
  let end = () => {}
  let begun: (tx: unknown) => void = () => {}
  const tx = new Promise<unknown>(resolve => (begun = resolve))
  const ended = transactor.transaction(async own => {
    begun(await transactor.adopt(own))
    await new Promise<void>(resolve => (end = resolve))
    return 'commit'
  })
  const commit = async () => {
    end()
    assert.equal((await ended).kind, 'committed')
  }
  return { tx: await tx, commit }
}

export const appendCases: readonly OutboxCase[] = [
  {
    name: 'delivers what was committed, with the rows it was committed with, and nothing that was rolled back',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('committed')])
      assert.deepEqual(await appendOnly(fixture, [message('rolled back')], 'rollback'), { kind: 'rolled-back' })
      assert.deepEqual(await drain(fixture), ['committed'])
      assert.deepEqual(await drain(fixture), [])
      assert.deepEqual(await fixture.outbox.lag(), { waiting: 0, heldBack: 0, oldestMs: 0, parked: 0 })
    },
  },
  {
    name: 'shows a message to nobody before its transaction has committed',
    async run(harness) {
      const fixture = await openFixture(harness)
      const other = await openFixture(harness)
      const { tx, commit } = await openTransaction(fixture)
      await fixture.outbox.append(tx, message('later'))
      assert.equal(await other.outbox.leaseLane({ leaseId: 'early', leaseMs: 1_000 }), undefined)
      assert.equal((await other.outbox.lag()).waiting, 0)
      await commit()
      await untilReadable(other)
      assert.deepEqual(await drain(other), ['later'])
    },
  },
  {
    name: 'hands over topic, aggregate, headers and every byte as they were appended',
    async run(harness) {
      const fixture = await openFixture(harness)
      const asked = message('\u{1f511} "key"', {
        topic: 'Orders ',
        aggregate: "caf\u00e9'; --",
        payload: Uint8Array.from({ length: 512 }, (_, index) => index % 256),
        headers: { traceparent: '00-ab-cd-01', 'x-empty': '' },
      })
      await append(fixture, [asked])
      const { messages } = await batchOf(fixture, await leased(fixture))
      const [found] = messages
      assert.ok(found)
      const { topic, aggregate, dedupId, payload, headers, attempts, crashes } = found
      assert.deepEqual(
        { topic, aggregate, dedupId, payload: Uint8Array.from(payload), headers },
        { ...asked, payload: Uint8Array.from(asked.payload) },
      )
      assert.deepEqual([attempts, crashes], [0, 0])
    },
  },
  {
    name: 'refuses what no store could keep, before it harms the transaction',
    async run(harness) {
      const fixture = await openFixture(harness)
      const bad = [
        message('a\0b'),
        message(''),
        message('x'.repeat(256)),
        message('a', { topic: '' }),
        message('a', { aggregate: '\ud800' }),
        message('a', { payload: new Uint8Array(64 * 1024 + 1) }),
        message('a', { headers: { long: 'x'.repeat(9_000) } }),
      ]
      await fixture.transactor.transaction(async own => {
        const tx = await fixture.transactor.adopt(own)
        for (const each of bad) {
          await assert.rejects(fixture.outbox.append(tx, each), { code: 'misconfigured' })
        }
        await fixture.outbox.append(tx, message('good'))
        return 'commit'
      })
      await untilReadable(fixture)
      assert.deepEqual(await drain(fixture), ['good'])
    },
  },
  {
    name: 'keeps the order of an aggregate, within a transaction and from one to the next',
    async run(harness) {
      const fixture = await openFixture(harness)
      const [a, b] = [messagesOf('a', 12), messagesOf('b', 12)]
      await append(fixture, [...a.slice(0, 7), ...b.slice(0, 2)])
      for (let turn = 2; turn < 12; turn += 1)
        await append(fixture, [...a.slice(turn + 5, turn + 6), ...b.slice(turn, turn + 1)])
      const seen = await drain(fixture, { limit: 3 })
      for (const sent of [a, b]) {
        const texts = sent.map(each => each.dedupId)
        assert.deepEqual(
          seen.filter(text => texts.includes(text)),
          texts,
        )
      }
      assert.equal(seen.length, 24)
    },
  },
  {
    name: 'keeps all messages of an aggregate in one lane',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('1', { aggregate: 'a' }), message('2', { aggregate: 'a', topic: 'other' })])
      const { messages } = await batchOf(fixture, await leased(fixture))
      assert.equal(messages.length, 2)
      assert.ok(messages.every(each => each.lane >= 0 && each.lane < fixture.outbox.lanes))
    },
  },
  {
    name: 'never skips a message whose transaction began first and committed last',
    needs: 'several-writers',
    async run(harness) {
      const fixture = await openFixture(harness)
      const slow = await openTransaction(fixture)
      await fixture.outbox.append(slow.tx, message('slow', { aggregate: 'same lane' }))
      await appendOnly(fixture, [message('quick', { aggregate: 'same lane' })], 'commit')
      const early = await drain(fixture)
      await slow.commit()
      await untilReadable(fixture)
      const late = await drain(fixture)
      assert.deepEqual([...early, ...late].sort(), ['quick', 'slow'])
      assert.equal((await fixture.outbox.lag()).waiting, 0)
    },
  },
  {
    name: 'delivers in the order of turns, also for a transaction that had begun to write before the one that went first',
    needs: 'several-writers',
    async run(harness) {
      const fixture = await openFixture(harness)
      const second = await openTransaction(fixture)
      // The writer takes its number here, long before it commits.
      await fixture.outbox.append(second.tx, message('elsewhere'))
      const between = await openTransaction(fixture)
      await fixture.outbox.append(between.tx, message('between'))
      await appendOnly(fixture, [message('first', { aggregate: 'a' })], 'commit')
      await fixture.outbox.append(second.tx, message('second', { aggregate: 'a' }))
      await second.commit()
      const early = await drain(fixture)
      await between.commit()
      await untilReadable(fixture)
      const seen = [...early, ...(await drain(fixture))]
      assert.deepEqual(
        seen.filter(text => ['first', 'second'].includes(text)),
        ['first', 'second'],
      )
      assert.deepEqual([...seen].sort(), ['between', 'elsewhere', 'first', 'second'])
    },
  },
  {
    name: 'says how many messages an open transaction holds back',
    needs: 'several-writers',
    async run(harness) {
      const fixture = await openFixture(harness)
      const open = await openTransaction(fixture)
      await fixture.outbox.append(open.tx, message('open'))
      await appendOnly(fixture, [message('waits')], 'commit')
      const { waiting, heldBack } = await fixture.outbox.lag()
      assert.deepEqual([waiting, heldBack], [1, 1])
      await open.commit()
      await untilReadable(fixture)
      assert.equal((await fixture.outbox.lag()).waiting, 2)
    },
  },
]

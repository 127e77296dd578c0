/** Failed messages are set apart, retried, parked and redriven; none is lost, and the others are delivered. */
import assert from 'node:assert/strict'
import type { Message } from 'latchkey'
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
  only,
  openFixture,
} from './fixture.ts'
import type { Consumer, OutboxCase } from './fixture.ts'

/** Refuses one message for as long as it is broken. */
function brokenFor(dedupId: string, how: (message: Message) => ReturnType<typeof failed>) {
  const state = { broken: true }
  const consume: Consumer = each => (state.broken && each.dedupId === dedupId ? how(each) : delivered(each))
  return { state, consume }
}

export const failureCases: readonly OutboxCase[] = [
  {
    name: 'tries a failed message again when it is due, not before, with the same dedup id and its attempts counted',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('m', { headers: { a: 'b' } })])
      const attempts: number[] = []
      const consume: Consumer = each => {
        attempts.push(each.attempts)
        assert.deepEqual([each.headers, Buffer.from(each.payload).toString()], [{ a: 'b' }, 'm'])
        return attempts.length < 3 ? failed(each, { dueInMs: hourMs }) : delivered(each)
      }
      assert.deepEqual(await drain(fixture, { consume }), ['m'])
      assert.deepEqual(await drain(fixture, { consume }), [])
      assert.equal((await fixture.outbox.lag()).waiting, 1)
      await harness.advance(hourMs + minuteMs)
      assert.deepEqual(await drain(fixture, { consume }), ['m'])
      await harness.advance(hourMs + minuteMs)
      assert.deepEqual(await drain(fixture, { consume }), ['m'])
      assert.deepEqual(attempts, [0, 1, 2])
      await harness.advance(10 * hourMs)
      assert.deepEqual(await drain(fixture, { consume }), [])
      assert.equal((await fixture.outbox.lag()).waiting, 0)
    },
  },
  {
    name: 'lets the aggregate of a failed message wait behind it, in order, and other aggregates go on',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [...messagesOf('a', 4), ...messagesOf('b', 4)])
      const { state, consume } = brokenFor('a2', each => failed(each, { dueInMs: hourMs }))
      const first = await drain(fixture, { consume, limit: 3 })
      assert.deepEqual(only(first, 'a'), ['a1', 'a2'])
      assert.deepEqual(only(first, 'b'), ['b1', 'b2', 'b3', 'b4'])
      await append(fixture, [message('a5', { aggregate: 'a' }), message('b5', { aggregate: 'b' })])
      assert.deepEqual(await drain(fixture, { consume }), ['b5'])
      assert.equal((await fixture.outbox.lag()).waiting, 4)
      await harness.advance(hourMs + minuteMs)
      assert.deepEqual(await drain(fixture, { consume }), ['a2'])
      state.broken = false
      await harness.advance(hourMs + minuteMs)
      await append(fixture, [message('a6', { aggregate: 'a' })])
      assert.deepEqual(await drain(fixture, { consume, limit: 2 }), ['a2', 'a3', 'a4', 'a5', 'a6'])
      await append(fixture, [message('a7', { aggregate: 'a' })])
      assert.deepEqual(await drain(fixture, { consume }), ['a7'])
    },
  },
  {
    name: 'goes on with the aggregate without the failed message where that is asked for',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 4))
      const { state, consume } = brokenFor('a2', each => failed(each, { dueInMs: hourMs, aggregate: 'skip' }))
      assert.deepEqual(await drain(fixture, { consume }), ['a1', 'a2', 'a3', 'a4'])
      state.broken = false
      await harness.advance(hourMs + minuteMs)
      assert.deepEqual(await drain(fixture, { consume }), ['a2'])
    },
  },
  {
    name: 'lets those behind it go on when a blocking message is skipped in the end',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      const block = brokenFor('a1', each => failed(each, { dueInMs: hourMs }))
      assert.deepEqual(await drain(fixture, block), ['a1'])
      await harness.advance(hourMs + minuteMs)
      const skip = brokenFor('a1', each => failed(each, { aggregate: 'skip' }))
      assert.deepEqual(await drain(fixture, skip), ['a1', 'a2', 'a3'])
    },
  },
  {
    name: 'parks a message with its attempts, cause and history, and its aggregate waits however long it takes',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 2))
      let tries = 0
      const consume: Consumer = each => {
        tries += 1
        return failed(each, tries < 3 ? { dueInMs: minuteMs, error: `E${tries}` } : { error: 'over\0budget' })
      }
      for (let turn = 0; turn < 4; turn += 1) {
        await drain(fixture, { consume })
        await harness.advance(100 * hourMs)
      }
      assert.equal(tries, 3)
      const [parked, ...more] = await fixture.outbox.parked({ limit: 10 })
      assert.ok(parked)
      assert.equal(more.length, 0)
      assert.deepEqual([parked.dedupId, parked.attempts, parked.topic], ['a1', 3, 'orders'])
      assert.equal(Buffer.from(parked.payload).toString(), 'a1')
      assert.match(parked.cause, /^over.budget$/u)
      assert.deepEqual(
        parked.history.slice(0, 2).map(entry => entry.error),
        ['E1', 'E2'],
      )
      assert.ok(parked.history.every((entry, index, all) => entry.atMs >= (all[index - 1]?.atMs ?? 0)))
      assert.ok(parked.parkedAtMs >= parked.createdAtMs)
      const { waiting, parked: count } = await fixture.outbox.lag()
      assert.deepEqual([waiting, count], [1, 1])
    },
  },
  {
    name: 'keeps the last twenty failures',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('m')])
      for (let turn = 0; turn < 25; turn += 1) {
        const dueInMs = turn < 24 ? { dueInMs: minuteMs } : {}
        await drain(fixture, { consume: each => failed(each, { error: `E${turn}`, ...dueInMs }) })
        await harness.advance(hourMs)
      }
      const [parked] = await fixture.outbox.parked({ limit: 1 })
      assert.deepEqual(
        parked?.history.map(entry => entry.error),
        Array.from({ length: 20 }, (_, index) => `E${index + 5}`),
      )
    },
  },
  {
    name: 'redrives in place: due at once, history kept, the act written down, the aggregate released in order',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 3))
      const { state, consume } = brokenFor('a1', each => failed(each))
      await drain(fixture, { consume })
      const [parked] = await fixture.outbox.parked({ limit: 10 })
      assert.ok(parked)
      assert.deepEqual(await fixture.outbox.redrive(parked.position, act), { kind: 'redriven' })
      assert.deepEqual(await fixture.outbox.redrive(parked.position, act), { kind: 'not-found' })
      assert.deepEqual(await fixture.outbox.parked({ limit: 10 }), [])
      assert.deepEqual(await drain(fixture, { consume }), ['a1'])
      const [again] = await fixture.outbox.parked({ limit: 10 })
      assert.deepEqual([again?.position, again?.attempts, again?.history.length], [parked.position, 1, 2])
      state.broken = false
      await fixture.outbox.redrive(parked.position, { by: 'kim', reason: 'second try' })
      assert.deepEqual(await drain(fixture, { consume }), ['a1', 'a2', 'a3'])
      const acts = await fixture.outbox.redrives(parked.position)
      assert.deepEqual(
        acts.map(({ by, reason }) => ({ by, reason })),
        [act, { by: 'kim', reason: 'second try' }],
      )
    },
  },
  {
    name: 'redrives nothing that is not parked, and writes no audit of it',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('m')])
      await drain(fixture, { consume: each => failed(each, { dueInMs: hourMs }) })
      for (const position of ['1', '999', '', 'nobody', "1'; --"]) {
        assert.deepEqual(await fixture.outbox.redrive(position, act), { kind: 'not-found' })
        assert.deepEqual(await fixture.outbox.redrives(position), [])
      }
    },
  },
  {
    name: 'conserves the count: what was parked is parked or delivered, whatever is redriven',
    async run(harness) {
      const fixture = await openFixture(harness)
      const sent = Array.from({ length: 40 }, (_, index) => message(`m${index}`, { aggregate: `g${index % 10}` }))
      await append(fixture, sent)
      const done = new Set<string>()
      const refuse: Consumer = each => failed(each, { aggregate: 'skip' })
      const half: Consumer = each => {
        if (Number(each.dedupId.slice(1)) % 2 === 0) return failed(each, { aggregate: 'skip' })
        done.add(each.dedupId)
        return delivered(each)
      }
      await drain(fixture, { consume: refuse })
      const pages = []
      for (let after = '0'; ;) {
        const page = await fixture.outbox.parked({ limit: 7, after })
        pages.push(...page)
        if (page.length === 0) break
        after = page.at(-1)?.position ?? ''
      }
      assert.equal(new Set(pages.map(each => each.dedupId)).size, 40)
      for (const { position } of pages) await fixture.outbox.redrive(position, act)
      assert.deepEqual(await fixture.outbox.parked({ limit: 100 }), [])
      await drain(fixture, { consume: half })
      const left = await fixture.outbox.parked({ limit: 100 })
      assert.deepEqual([left.length, done.size], [20, 20])
      assert.ok(left.every(each => !done.has(each.dedupId)))
    },
  },
  {
    name: 'wakes a long line behind a message bit by bit, in order and to its end',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, messagesOf('a', 250))
      const { state, consume } = brokenFor('a1', each => failed(each))
      assert.deepEqual(await drain(fixture, { consume, limit: 50 }), ['a1'])
      assert.equal((await fixture.outbox.lag()).waiting, 249)
      const [parked] = await fixture.outbox.parked({ limit: 1 })
      await fixture.outbox.redrive(parked?.position ?? '', act)
      state.broken = false
      const seen = await drain(fixture, { consume, limit: 50 })
      assert.deepEqual(
        seen,
        messagesOf('a', 250).map(each => each.dedupId),
      )
    },
  },
]

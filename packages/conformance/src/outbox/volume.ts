/** Many messages, several relays, and what is left when they are done. */
import assert from 'node:assert/strict'
import {
  append,
  delivered,
  drain,
  failed,
  hourMs,
  message,
  messagesOf,
  openFixture,
  type OutboxCase,
} from './fixture.ts'

export const volumeCases: readonly OutboxCase[] = [
  {
    name: 'drains ten thousand messages in batches of a hundred, each once, each aggregate in order',
    async run(harness) {
      const fixture = await openFixture(harness)
      const sent = Array.from({ length: 10_000 }, (_, index) => {
        const aggregate = `g${index % 50}`
        return message(`${aggregate}:${index}`, { aggregate })
      })
      for (let from = 0; from < sent.length; from += 500) await append(fixture, sent.slice(from, from + 500))
      const seen = await drain(fixture, { limit: 100 })
      assert.equal(seen.length, sent.length)
      assert.equal(new Set(seen).size, sent.length)
      for (let group = 0; group < 50; group += 1) {
        const numbers = seen.filter(text => text.startsWith(`g${group}:`)).map(text => Number(text.split(':')[1]))
        assert.deepEqual(
          numbers,
          [...numbers].sort((one, other) => one - other),
        )
      }
    },
  },
  {
    name: 'shares the work between four relays: each message once, each aggregate in order',
    async run(harness) {
      const benches = await Promise.all(Array.from({ length: 4 }, () => openFixture(harness)))
      const [first] = benches
      assert.ok(first)
      const sent = Array.from({ length: 24 }, (_, group) => messagesOf(`g${group}.`, 20)).flat()
      for (let from = 0; from < sent.length; from += 60) await append(first, sent.slice(from, from + 60))
      const seen: string[] = []
      const consume = (each: Parameters<typeof delivered>[0]) => {
        seen.push(each.dedupId)
        return delivered(each)
      }
      await Promise.all(benches.map(fixture => drain(fixture, { limit: 7, consume })))
      assert.equal(seen.length, sent.length)
      for (let group = 0; group < 24; group += 1) {
        const expected = messagesOf(`g${group}.`, 20).map(each => each.dedupId)
        assert.deepEqual(
          seen.filter(text => text.startsWith(`g${group}.`)),
          expected,
        )
      }
    },
  },
  {
    name: 'prunes delivered messages in batches, never one that waits, failed or is parked',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [...messagesOf('ok', 10), ...messagesOf('parked', 3), ...messagesOf('retry', 3)])
      await drain(fixture, {
        consume: each => {
          if (each.aggregate === 'parked') return failed(each)
          return each.aggregate === 'retry' ? failed(each, { dueInMs: hourMs }) : delivered(each, 'evt')
        },
      })
      await append(fixture, [message('waits')])
      const prune = () => fixture.outbox.prune({ limit: 4, keepMs: hourMs })
      assert.equal(await prune(), 0)
      await harness.advance(2 * hourMs)
      assert.deepEqual([await prune(), await prune(), await prune(), await prune()], [4, 4, 2, 0])
      assert.deepEqual(await fixture.outbox.parked({ limit: 10 }).then(found => found.map(each => each.dedupId)), [
        'parked1',
      ])
      assert.equal((await fixture.outbox.lag()).waiting, 6)
      const left = await drain(fixture)
      assert.deepEqual([...left].sort(), ['retry1', 'retry2', 'retry3', 'waits'])
    },
  },
  {
    name: 'tells how long the oldest message has waited',
    async run(harness) {
      const fixture = await openFixture(harness)
      await append(fixture, [message('old')])
      await harness.advance(hourMs)
      await append(fixture, [message('new')])
      const { waiting, oldestMs } = await fixture.outbox.lag()
      assert.equal(waiting, 2)
      assert.ok(oldestMs >= hourMs && oldestMs < 2 * hourMs, `the oldest waits ${oldestMs} ms`)
    },
  },
]

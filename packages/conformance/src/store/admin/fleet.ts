/** What the processes of a fleet say of themselves. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { hourMs, minuteMs, rowIn, uuidOf } from '../fixture.ts'
import { acted, adminIn, openAdmin } from './fixture.ts'

const dayMs = 24 * hourMs

export const fleetCases: readonly StoreCase[] = [
  {
    name: 'shows each loop of each process as it was last written, also to another process, and how long ago',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const other = adminIn(await harness.open())
      const beat = { process: 'web-1', loop: 'sweeper', turns: 1, failures: 0, lastError: undefined, detail: undefined }
      await admin.beat([
        { ...beat, lastTurnAgoMs: undefined },
        { ...beat, loop: 'reaper', lastTurnAgoMs: 5_000 },
      ])
      await admin.beat([
        { ...beat, turns: 2, failures: 1, lastTurnAgoMs: 0, lastError: 'ECONNREFUSED', detail: '{"a":1}' },
      ])
      await harness.advance(5 * minuteMs)
      const found = (await other.workers()).toSorted((left, right) => (left.loop < right.loop ? -1 : 1))
      assert.deepEqual(
        found.map(({ process, loop, turns, failures, lastError, detail }) => [
          process,
          loop,
          turns,
          failures,
          lastError,
          detail,
        ]),
        [
          ['web-1', 'reaper', 1, 0, undefined, undefined],
          ['web-1', 'sweeper', 2, 1, 'ECONNREFUSED', '{"a":1}'],
        ],
      )
      for (const { seenAgoMs } of found) assert.ok(seenAgoMs >= 5 * minuteMs && seenAgoMs < 6 * minuteMs)
      assert.ok((found[0]?.lastTurnAgoMs ?? 0) >= 5 * minuteMs + 5_000)
    },
  },
  {
    name: 'adds up what processes count in the same minute, by operation and metric',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const other = adminIn(await harness.open())
      const rate = { operation: 'pay', metric: 'reserve.created', count: 3 }
      await Promise.all([
        admin.addRates([rate, { ...rate, metric: 'reserve.replay', count: 1 }]),
        other.addRates([rate]),
      ])
      const metrics = ['reserve.created', 'reserve.replay']
      const found = await admin.rates({ sinceMs: hourMs, metrics })
      const counted = (metric: string) =>
        found
          .filter(each => each.metric === metric && each.operation === 'pay')
          .reduce((sum, { count }) => sum + count, 0)
      assert.deepEqual([counted('reserve.created'), counted('reserve.replay')], [6, 1])
      for (const { minuteMs: at } of found) assert.equal(at % minuteMs, 0)
      await harness.advance(2 * hourMs)
      assert.deepEqual(await admin.rates({ sinceMs: hourMs, metrics }), [])
    },
  },
  {
    name: 'adds the minutes up, of all processes, and leaves metrics out that were not asked for',
    async run(harness) {
      const { admin } = await openAdmin(harness)
      const other = adminIn(await harness.open())
      const fast = { operation: 'pay', metric: 'execution.duration.10', count: 3 }
      const slow = { ...fast, metric: 'execution.duration.500', count: 1 }
      await admin.addRates([fast, slow, { ...fast, metric: 'reserve.created', count: 9 }])
      await harness.advance(2 * minuteMs)
      await Promise.all([admin.addRates([slow]), other.addRates([fast, { ...fast, operation: 'refund', count: 2 }])])
      const query = { sinceMs: hourMs, metrics: [fast.metric, slow.metric] }
      const sums = (await admin.rateSums(query)).map(({ operation, metric, count }) => [operation, metric, count])
      assert.deepEqual(
        sums.toSorted((left, right) => (String(left) < String(right) ? -1 : 1)),
        [
          ['pay', fast.metric, 6],
          ['pay', slow.metric, 2],
          ['refund', fast.metric, 2],
        ],
      )
      assert.ok((await admin.rates(query)).every(({ metric }) => query.metrics.includes(metric)))
      await harness.advance(2 * hourMs)
      assert.deepEqual(await admin.rateSums(query), [])
    },
  },
  {
    name: 'prunes what is older than a day, and decisions after a month, and nothing younger',
    async run(harness) {
      const { store, admin } = await openAdmin(harness)
      const { id } = await rowIn.unknown(harness, store, 'a')
      await acted(admin, id, {
        ...{ kind: 'propose', proposalId: uuidOf('p'), act: 'forget', detail: '{}', expiresInMs: hourMs },
      })
      await admin.addRates([{ operation: 'pay', metric: 'reserve.created', count: 3 }])
      await admin.beat([
        { process: 'p', loop: 'l', turns: 1, failures: 0, lastTurnAgoMs: 0, lastError: undefined, detail: undefined },
      ])
      assert.equal(await admin.prune({ limit: 10 }), 0)
      await harness.advance(dayMs + 5 * minuteMs)
      assert.equal(await admin.prune({ limit: 10 }), 2)
      assert.deepEqual([await admin.workers(), (await admin.proposals({ limit: 10 })).length], [[], 1])
      await harness.advance(31 * dayMs)
      assert.equal(await admin.prune({ limit: 10 }), 1)
    },
  },
]

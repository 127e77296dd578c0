/** The outbox: how fast a backlog leaves, and how long a message takes. */
import { createDatabaseOn } from '../machine/database.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { figure, pairwise } from '../statistics.ts'
import type { OutboxResult } from '../outbox/measure.ts'
import { measureOutboxApart } from '../outbox/apart.ts'

export const outbox: Section = {
  name: 'outbox',
  what: 'the relay in batches over one that locks, delivers and deletes message by message; delivery latency',
  async run(context) {
    const database = await createDatabaseOn((await context.postgres()).url)
    try {
      const { repetitions, quick } = context
      const size = quick ? { messages: 5_000, singles: 200 } : { messages: 40_000, singles: 1_000 }
      const order = { url: database.url, repetitions, ...size }
      return resultOf(await measureOutboxApart(context.programs.outbox, order))
    } finally {
      await database.drop()
    }
  },
}

function resultOf(data: OutboxResult): SectionResult {
  const { oneByOne, inBatches, hinted, polled } = data
  const ratios = pairwise(inBatches, oneByOne)
  const table = markdownTable(
    ['relay', 'messages/s', 'ratio (min to max)'],
    [
      ['one by one: lock, deliver, delete, commit', withSpread(oneByOne, 0), ''],
      ['Latchkey, batches of 200, its default', withSpread(inBatches, 0), withSpread(ratios, 1)],
    ],
  )
  const told = `From commit to delivery at 200 messages a second: p50 ${hinted.p50Ms.toFixed(1)} ms and p99 ${hinted.p99Ms.toFixed(1)} ms with a hint, p50 ${polled.p50Ms.toFixed(0)} ms and p99 ${polled.p99Ms.toFixed(0)} ms by polling alone.`
  return {
    markdown: ['### Outbox: a backlog, delivered into a function', table, told].join('\n\n'),
    figures: { 'batches over one by one': figure(ratios, '×', 'outbox relay in batches over one by one') },
    faults: [],
    data,
  }
}

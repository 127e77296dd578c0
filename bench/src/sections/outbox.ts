/** The outbox: how fast a backlog leaves, and how long a message takes. */
import type { Context } from '../context.ts'
import { askApart } from '../machine/child.ts'
import { createDatabaseOn } from '../machine/database.ts'
import type { OutboxOrder, OutboxResult } from '../outbox/measure.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { byStart } from '../repetitions.ts'
import { figure, pairwise } from '../statistics.ts'

const starts = 2

export const outbox: Section = {
  name: 'outbox',
  what: 'the relay in batches over one that locks, delivers and deletes message by message; delivery latency',
  async run(context) {
    const parts: OutboxResult[] = []
    for (const repetitions of byStart(context.repetitions, starts)) {
      parts.push(await measure(context, { repetitions, latency: parts.length === 0 }))
    }
    return resultOf(parts.reduce(joined))
  },
}

async function measure(
  { postgres, programs, quick }: Context,
  order: Pick<OutboxOrder, 'repetitions' | 'latency'>,
): Promise<OutboxResult> {
  const database = await createDatabaseOn((await postgres()).url)
  const size = quick ? { messages: 5_000, singles: 200 } : { messages: 40_000, singles: 1_000 }
  try {
    return await askApart<OutboxResult>(programs.outbox, { url: database.url, ...order, ...size } satisfies OutboxOrder)
  } finally {
    await database.drop()
  }
}

function joined(first: OutboxResult, second: OutboxResult): OutboxResult {
  return {
    oneByOne: [...first.oneByOne, ...second.oneByOne],
    inBatches: [...first.inBatches, ...second.inBatches],
    latency: first.latency ?? second.latency,
  }
}

function resultOf(data: OutboxResult): SectionResult {
  const { oneByOne, inBatches, latency } = data
  const ratios = pairwise(inBatches, oneByOne)
  const table = markdownTable(
    ['relay', 'messages/s', 'ratio (min to max)'],
    [
      ['one by one: lock, deliver, delete, commit', withSpread(oneByOne, 0), ''],
      ['Latchkey, batches of 200, its default', withSpread(inBatches, 0), withSpread(ratios, 1)],
    ],
  )
  return {
    markdown: ['### Outbox: a backlog, delivered into a function', table, ...sentenceOf(latency)].join('\n\n'),
    figures: { 'batches over one by one': figure(ratios, '×', 'outbox relay in batches over one by one') },
    faults: [],
    data,
  }
}

function sentenceOf(latency: OutboxResult['latency']): string[] {
  if (latency === undefined) return []
  const { hinted, polled } = latency
  return [
    `From commit to delivery at 200 messages a second: p50 ${hinted.p50Ms.toFixed(1)} ms and p99 ${hinted.p99Ms.toFixed(1)} ms with a hint, p50 ${polled.p50Ms.toFixed(0)} ms and p99 ${polled.p99Ms.toFixed(0)} ms by polling alone.`,
  ]
}

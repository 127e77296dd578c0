/** Consumers: how fast a backlog of a broker is booked, each message once. */
import { findNats, startNats } from '../../../test/servers/nats/nats-server.ts'
import type { ConsumerOrder, ConsumerResult, ConsumerRun } from '../consumers/measure.ts'
import type { Context } from '../context.ts'
import { askApart } from '../machine/child.ts'
import { createDatabaseOn } from '../machine/database.ts'
import { byStart } from '../repetitions.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { figure, median, pairwise } from '../statistics.ts'

const starts = 2
/** The default, which keeps the order, and as many as a small pool carries. */
const concurrencies = [1, 8] as const

export const consumers: Section = {
  name: 'consumers',
  what: 'an atomic consumer of NATS on PostgreSQL over the same one with a hand-written inbox insert in its transaction',
  async run(context) {
    const found = findNats()
    if (found.kind === 'missing') {
      return { markdown: '', figures: {}, faults: [`${found.why}; \`npm test\` installs it where it can`], data: {} }
    }
    const measured: Measured[] = []
    for (const concurrency of concurrencies) measured.push({ concurrency, ...(await measureAll(context, concurrency)) })
    return resultOf(measured)
  },
}

interface Measured extends ConsumerResult {
  readonly concurrency: number
}

async function measureAll(context: Context, concurrency: number): Promise<ConsumerResult> {
  const parts: ConsumerResult[] = []
  for (const repetitions of byStart(context.repetitions, starts)) {
    parts.push(await measure(context, { repetitions, concurrency }))
  }
  return {
    byHand: parts.flatMap(({ byHand }) => byHand),
    latchkey: parts.flatMap(({ latchkey }) => latchkey),
    faults: parts.flatMap(({ faults }) => faults),
  }
}

async function measure(
  { postgres, programs, quick }: Context,
  asked: Pick<ConsumerOrder, 'repetitions' | 'concurrency'>,
): Promise<ConsumerResult> {
  const server = await startNats()
  const database = await createDatabaseOn((await postgres()).url)
  const messages = (quick ? 250 : 1_000) * asked.concurrency
  const order: ConsumerOrder = { url: database.url, address: server.url, messages, ...asked }
  try {
    return await askApart<ConsumerResult>(programs.consumers, order)
  } finally {
    await database.drop()
    await server.stop()
  }
}

function resultOf(measured: readonly Measured[]): SectionResult {
  const all = measured.map(each => ({ ...each, ratios: pairwise(rates(each.latchkey), rates(each.byHand)) }))
  const head = ['at the same time', 'by hand, messages/s', 'Latchkey, atomic, messages/s', 'ratio (min to max)']
  const table = markdownTable(
    [...head, 'by hand, app µs/message', 'Latchkey, app µs/message'],
    all.map(({ concurrency, byHand, latchkey, ratios }) => [
      ...[String(concurrency), withSpread(rates(byHand), 0), withSpread(rates(latchkey), 0), withSpread(ratios, 2)],
      ...[byHand, latchkey].map(runs => median(runs.map(({ appUs }) => appUs)).toFixed(0)),
    ]),
  )
  const figures = all.map(({ concurrency, ratios }) => [
    `atomic over by hand, ${concurrency} at a time`,
    figure(ratios, '×', `messages through an atomic consumer, ${concurrency} at a time, over a hand-written inbox`),
  ])
  return {
    markdown: ['### Consumers: a backlog of NATS, booked in PostgreSQL', table].join('\n\n'),
    figures: Object.fromEntries(figures),
    faults: all.flatMap(({ faults }) => faults),
    data: measured,
  }
}

function rates(runs: readonly ConsumerRun[]): number[] {
  return runs.map(({ rate }) => rate)
}

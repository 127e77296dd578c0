/** Operators: how long they wait for an answer among ten million keys. */
import { askApart } from '../machine/child.ts'
import { createDatabaseOn } from '../machine/database.ts'
import { type Filled, fillForOperators } from '../operators/fill.ts'
import type { Answered, OperatorsOrder } from '../operators/measure.ts'
import { markdownTable, milliseconds } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { type Figure, figure, median } from '../statistics.ts'

/** More than elsewhere: one of them that is slow is what a person remembers. */
const repetitionsLeast = 30

interface Measured extends Filled {
  readonly keys: number
  readonly unknown: number
  readonly repetitions: number
  readonly answered: readonly Answered[]
}

export const operators: Section = {
  name: 'operators',
  onlyNamed: true,
  what: 'what operators ask of createAdmin, among ten million completed keys and ten thousand unknown ones',
  async run({ postgres, programs, quick, repetitions }) {
    const sizes = quick ? { keys: 200_000, unknown: 1_500 } : { keys: 10_000_000, unknown: 10_000 }
    const order = { ...sizes, repetitions: Math.max(repetitions, repetitionsLeast) }
    const { url: serverUrl, pid, dataDir } = await postgres()
    const database = await createDatabaseOn(serverUrl)
    try {
      const { url } = database
      const filled = await fillForOperators({ url, ...sizes })
      const asked: OperatorsOrder = { url, server: { pid, dataDir }, ...order }
      const answered = await askApart<readonly Answered[]>(programs.operators, asked)
      return resultOf({ ...filled, ...order, answered })
    } finally {
      await database.drop()
    }
  },
}

function resultOf(measured: Measured): SectionResult {
  const { answered } = measured
  const faults = answered.flatMap(({ name, faults }) => faults.map(fault => `${name} ${fault}`))
  return { markdown: markdownOf(measured), figures: figuresOf(answered), faults, data: measured }
}

/** Of each kind the one that takes longest: the others are quicker. */
function figuresOf(answered: readonly Answered[]): Record<string, Figure> {
  const slowest = (kind: Answered['kind'], by: (each: Answered) => number) =>
    answered.filter(each => each.kind === kind).toSorted((a, b) => by(b) - by(a))[0]
  const figures = (['find', 'list'] as const).flatMap(kind => {
    const waited = slowest(kind, ({ ms }) => median(ms))
    const worked = slowest(kind, ({ processorMs }) => processorMs)
    return [
      [`slowest ${kind}`, figure(waited?.ms ?? [], 'ms', `the slowest ${kind}: ${waited?.name}`)],
      [
        `slowest ${kind}, processor`,
        figure([worked?.processorMs ?? Number.NaN], 'ms', `processor time: ${worked?.name}`),
      ],
    ] as const
  })
  return Object.fromEntries(figures)
}

function markdownOf({ keys, unknown, preloadSeconds, restSeconds, repetitions, answered }: Measured): string {
  const table = markdownTable(
    ['question', 'quickest ms', 'p50 ms', 'slowest ms', 'processor ms'],
    answered.map(({ name, ms, processorMs }) => [
      ...[name, ...[Math.min(...ms), median(ms), Math.max(...ms), processorMs].map(milliseconds)],
    ]),
  )
  const count = (rows: number) => rows.toLocaleString('en')
  return [
    `### Operators: ${count(keys)} completed keys, ${count(unknown)} unknown`,
    table,
    `Each was asked ${repetitions} times, one at a time. The keys were made in ${preloadSeconds.toFixed(0)} s, the rest in ${restSeconds.toFixed(0)} s.`,
  ].join('\n\n')
}

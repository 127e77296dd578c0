import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readArguments } from '../arguments.ts'
import { sections } from '../sections/all.ts'
import type { Figure } from '../statistics.ts'
import { agreementTable } from './agreement.ts'
import { costSummary } from './costs.ts'
import { judge, readGoals } from './goals.ts'
import { lineChart, rangeChart } from './plot.ts'
import { quoted, readmeFile, readmeText, readPublished } from './publish.ts'
import { summaryTable } from './summary.ts'

const found = (value: number): Figure => ({ value, min: value, max: value, unit: '×', what: 'a ratio' })

it('meets a goal at the bar, misses it beyond, and never by not measuring', () => {
  const goals = {
    'a: fast': { atLeast: 0.75, why: 'fast' },
    'a: small': { atMost: 2, why: 'small' },
    'a: forgotten': { atLeast: 1, why: 'forgotten' },
    'b: elsewhere': { atLeast: 1, why: 'elsewhere' },
  }
  const met = (fast: number, small: number) =>
    judge(
      goals,
      new Map([
        ['a: fast', found(fast)],
        ['a: small', found(small)],
      ]),
      ['a'],
    ).map(verdict => verdict.met)
  expect(met(0.75, 2)).toEqual([true, true, false])
  expect(met(0.749, 2.01)).toEqual([false, false, false])
  expect(met(Number.NaN, Number.NaN)).toEqual([false, false, false])
})

it('has a section for every goal, and a sentence', () => {
  const goals = readGoals(new URL('../../goals.json', import.meta.url).pathname)
  const names = sections.map(({ name }) => name)
  for (const [name, { why }] of Object.entries(goals)) {
    expect(names).toContain(name.split(': ')[0])
    expect(why).not.toBe('')
  }
})

it('says what a missed goal was', () => {
  const verdicts = judge({ 'a: fast': { atLeast: 5, why: 'over naive' } }, new Map([['a: fast', found(4.2)]]), ['a'])
  expect(summaryTable(verdicts)).toContain(
    '| over naive | at least 5 | 4.20 × (4.20 to 4.20) | **no** | **missed: at least 5** |',
  )
})

it('agrees with an earlier run inside the spread of that, and not with one that did not measure', () => {
  const why = (name: string) => ({ atLeast: 0, why: name })
  const goals = { 'a: inside': why('inside'), 'a: outside': why('outside'), 'a: new': why('new') }
  const now = new Map(Object.keys(goals).map(name => [name, found(4)]))
  const spread = (min: number, max: number): Figure => ({ ...found(3), min, max })
  const earlier = { 'a: inside': spread(2, 4), 'a: outside': spread(2, 3.9) }
  const lines = agreementTable(judge(goals, now, ['a']), earlier)
    .split('\n')
    .slice(2)
  expect(lines).toEqual([
    '| inside | 3.00 × (2.00 to 4.00) | 4.00 × (4.00 to 4.00) | yes |',
    '| outside | 3.00 × (2.00 to 3.90) | 4.00 × (4.00 to 4.00) | **no** |',
    '| new | not measured | 4.00 × (4.00 to 4.00) | **no** |',
  ])
})

it('replaces what stands between the marks of a document, and nothing else', () => {
  const page = 'before\n<!-- bench: written by `npm run bench -- --publish` -->\nold\n<!-- bench: end -->\nafter\n'
  const once = quoted(page, 'new')
  expect(once).toBe(page.replace('old', 'new'))
  expect(quoted(once, 'new')).toBe(once)
  expect(() => quoted('a page without marks', 'new')).toThrow('has no place for the benchmark')
})

it('shows the cost of a request in README, as the published run measured it', () => {
  const { costs, sentence } = readPublished()
  const readme = readFileSync(readmeFile, 'utf8')
  expect(quoted(readme, readmeText({ costs, sentence, figures: {} })), 'run `npm run bench -- --readme`').toBe(readme)
})

it('shows what was measured and leaves out the rest', () => {
  const cost = { requestsPerSecond: 7090.6, p50Ms: 8, p99Ms: 25, appUs: 122.6, databaseUs: 0 }
  const lines = costSummary({ saturation: { sqlite: cost }, replay: {} }, 'Measured.').split('\n')
  expect(lines.slice(2)).toEqual(['| Latchkey on SQLite | yes | 7,091 |  | 123 |  |', '', 'Measured.'])
  expect(costSummary({ saturation: { 'powertools-redis': cost } }, '')).toContain('| no, within a second |')
})

it('draws every subject, with its name readable as text', () => {
  const lines = [
    {
      name: 'bare',
      points: [
        { x: 1, y: 1 },
        { x: 64, y: 1 },
      ],
    },
    {
      name: 'A & B',
      points: [
        { x: 1, y: 0.2 },
        { x: 64, y: 0.7 },
      ],
    },
  ]
  const chart = lineChart({ title: 'Throughput', xLabel: 'connections', lines })
  expect(chart.match(/<polyline/g)).toHaveLength(2)
  expect(chart).toContain('A &amp; B')
  expect(chart).not.toContain('NaN')
  const ranges = [
    { name: 'bare', from: 0.4, to: 3 },
    { name: 'slow', from: 20, to: 120 },
  ]
  expect(rangeChart({ title: 'Latency', xLabel: 'ms', ranges })).not.toContain('NaN')
})

it('refuses what it cannot do', () => {
  const known = [{ name: 'saturation' }, { name: 'work' }, { name: 'long', onlyNamed: true as const }]
  expect(readArguments([], known)).toMatchObject({ only: ['saturation', 'work'], repetitions: 5, check: false })
  expect(readArguments(['--only', 'long'], known)).toMatchObject({ only: ['long'] })
  expect(readArguments(['--only', 'work', '--quick'], known)).toMatchObject({
    only: ['work'],
    repetitions: 3,
    quick: true,
  })
  expect(readArguments(['--only', 'wrok'], known)).toMatchObject({ wrong: expect.stringContaining('wrok') })
  expect(readArguments(['--repetitions', '2'], known)).toMatchObject({ wrong: expect.stringContaining('at least 5') })
  expect(readArguments(['--publish', '--quick'], known)).toMatchObject({ wrong: expect.stringContaining('whole run') })
  expect(readArguments(['--nonsense'], known)).toHaveProperty('wrong')
})

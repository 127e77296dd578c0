/**
 * Puts a run's figures where people read them: what a request costs into README.md, every figure with its goal and the
 * plots into docs/bench.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Curve, curvesIn } from '../sections/connections.ts'
import type { Figures } from './agreement.ts'
import { type Costs, costsOf, costSummary } from './costs.ts'
import { lineChart, rangeChart } from './plot.ts'
import { markdownOf, type Report } from './report.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const figuresFile = `${root}docs/bench/figures.json`
export const readmeFile: string = `${root}README.md`
const begin = '<!-- bench: written by `npm run bench -- --publish` -->'
const end = '<!-- bench: end -->'
/** Where latency is compared: the load of the headline. */
const comparedAt = 64

/** What docs/bench/figures.json holds. */
export interface Published {
  readonly sentence: string
  readonly costs: Costs
  readonly figures: Figures
}

export function publish(report: Report): void {
  const folder = `${root}docs/bench/`
  mkdirSync(folder, { recursive: true })
  const curves = curvesIn(report.sections.get('connections'))
  writeFileSync(`${folder}throughput.svg`, throughputPlot(curves))
  writeFileSync(`${folder}latency.svg`, latencyPlot(curves))
  writeFileSync(
    `${folder}results.md`,
    `${markdownOf(report)}\n![throughput](throughput.svg)\n\n![latency](latency.svg)\n`,
  )
  const { sentence, figures, sections } = report
  const published: Published = { sentence, costs: costsOf(sections), figures: Object.fromEntries(figures) }
  writeFileSync(figuresFile, `${JSON.stringify(published, null, 2)}\n`)
  publishInReadme()
}

/** Rewrites README's figures from those of the published run. */
export function publishInReadme(): void {
  writeFileSync(readmeFile, quoted(readFileSync(readmeFile, 'utf8'), readmeText(readPublished())))
}

export function readPublished(): Published {
  // Written by publish().
  return JSON.parse(readFileSync(figuresFile, 'utf8')) as Published
}

export function readmeText({ sentence, costs }: Published): string {
  return costSummary(costs, sentence)
}

/** Replaces the text between the two marks. */
export function quoted(document: string, words: string): string {
  const [from, to] = [document.indexOf(begin), document.indexOf(end)]
  if (from === -1 || to < from)
    throw new Error(`the document has no place for the benchmark: add "${begin}" and "${end}"`)
  return `${document.slice(0, from + begin.length)}\n${words}\n${document.slice(to)}`
}

function throughputPlot(curves: readonly Curve[]): string {
  const lines = curves.map(({ name, points }) => ({
    name,
    points: points.map(({ connections, ratio }) => ({ x: connections, y: ratio })),
  }))
  return lineChart({ title: 'Throughput relative to the bare server, no work', xLabel: 'connections', lines })
}

function latencyPlot(curves: readonly Curve[]): string {
  const ranges = curves.flatMap(({ name, points }) =>
    points
      .filter(({ connections }) => connections === comparedAt)
      .map(({ p50Ms, p99Ms }) => ({ name, from: p50Ms, to: p99Ms })),
  )
  return rangeChart({ title: `Latency at ${comparedAt} connections: from p50 to p99`, xLabel: 'milliseconds', ranges })
}

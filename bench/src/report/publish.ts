/** Puts a run's figures where people read them: README.md, and docs/bench with its plots. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Curve, curvesIn } from '../sections/connections.ts'
import { lineChart, rangeChart } from './plot.ts'
import { markdownOf, type Report } from './report.ts'
import { summaryTable } from './summary.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const begin = '<!-- bench: written by `npm run bench -- --publish` -->'
const end = '<!-- bench: end -->'
/** Where latency is compared: the load of the headline. */
const comparedAt = 64

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
  const { sentence, figures } = report
  const told = { sentence, figures: Object.fromEntries(figures) }
  writeFileSync(`${folder}figures.json`, `${JSON.stringify(told, null, 2)}\n`)
  const readme = `${root}README.md`
  writeFileSync(readme, quoted(readFileSync(readme, 'utf8'), `${sentence}\n\n${summaryTable(report.verdicts)}`))
}

/** Replaces what stands between the two marks. */
export function quoted(document: string, words: string): string {
  const [from, to] = [document.indexOf(begin), document.indexOf(end)]
  if (from === -1 || to < from)
    throw new Error(`the document has no place for the benchmark: put in "${begin}" and "${end}"`)
  return `${document.slice(0, from + begin.length)}\n${words}\n${document.slice(to)}`
}

function throughputPlot(curves: readonly Curve[]): string {
  const lines = curves.map(({ name, points }) => ({
    name,
    points: points.map(({ connections, ratio }) => ({ x: connections, y: ratio })),
  }))
  return lineChart({ title: 'Throughput over the bare server, no work', xLabel: 'connections', lines })
}

function latencyPlot(curves: readonly Curve[]): string {
  const ranges = curves.flatMap(({ name, points }) =>
    points
      .filter(({ connections }) => connections === comparedAt)
      .map(({ p50Ms, p99Ms }) => ({ name, from: p50Ms, to: p99Ms })),
  )
  return rangeChart({ title: `Latency at ${comparedAt} connections: from p50 to p99`, xLabel: 'milliseconds', ranges })
}

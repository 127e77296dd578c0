/** Results as a table for people, and the proof that nothing was lost or left half-way. */
import type { SubjectResult } from './overhead.ts'

export function table(title: string, results: readonly SubjectResult[]): string {
  const rows = results.filter(({ leftOut }) => leftOut === undefined).map(row)
  const head = [
    'subject',
    'req/s',
    'ratio (min to max)',
    'against',
    'p50 ms',
    'p99 ms',
    'acknowledged = rows = completed',
  ]
  const left = results.flatMap(({ subject, leftOut }) =>
    leftOut === undefined ? [] : [`left out: ${subject}: ${leftOut}`],
  )
  return [`### ${title}`, '', line(head), line(head.map(() => '---')), ...rows.map(line), '', ...left, ''].join('\n')
}

function row({ subject, against, runs, ratios, proof }: SubjectResult): string[] {
  const spread = `${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)})`
  return [
    subject,
    Math.round(median(runs.map(run => run.requestsPerSecond))).toString(),
    spread,
    against,
    median(runs.map(run => run.p50Ms)).toFixed(1),
    median(runs.map(run => run.p99Ms)).toFixed(1),
    proof === undefined ? '' : `${proof.acknowledged} = ${proof.stored.rows} = ${proof.stored.completed}`,
  ]
}

/** What does not add up; empty when every acknowledged key has one completed row, and one business row where there are any. */
export function faults(results: readonly SubjectResult[]): string[] {
  return results.flatMap(({ subject, proof, runs }) => {
    const refused = runs.flatMap(run =>
      Object.entries(run.refused).map(([status, count]) => `${subject}: ${count} answers of ${status}`),
    )
    if (proof === undefined) return refused
    const { acknowledged, stored } = proof
    const equal = stored.rows === acknowledged && stored.completed === acknowledged
    const business = stored.businessRows === 0 || stored.businessRows === acknowledged
    const wrong = `${subject}: ${acknowledged} acknowledged, ${stored.rows} rows, ${stored.completed} completed, ${stored.businessRows} business rows`
    return equal && business ? refused : [...refused, wrong]
  })
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

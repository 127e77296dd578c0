/** Markdown tables. */
import { refusalsOf } from '../load/load.ts'
import type { ScenarioResult, SubjectRuns } from '../scenario.ts'
import { median, pairwise } from '../statistics.ts'

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function milliseconds(value: number): string {
  return value.toFixed(value < 1 ? 2 : 1)
}

export function withSpread(values: readonly number[], digits: number): string {
  if (values.length === 0) return ''
  return `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`
}

const head = [
  'subject',
  'req/s',
  'ratio (min to max)',
  'p50 ms',
  'p99 ms',
  'app µs/req',
  'db µs/req',
  'load µs/req',
  'acknowledged = rows = completed',
]

/** Medians over the repetitions; the ratio is to the bare server of the same repetition. */
export function scenarioTable({ subjects, leftOut }: ScenarioResult, connections?: number): string {
  const at = (runs: SubjectRuns['runs']) =>
    runs.filter(run => connections === undefined || run.connections === connections)
  const rows = subjects.map(({ id, name, against, runs, proof }) => {
    const own = at(runs)
    const base = at(subjects.find(subject => subject.id === against)?.runs ?? [])
    const perSecond = own.map(run => run.requestsPerSecond)
    const ratios =
      id === against || base.length === 0
        ? []
        : pairwise(
            perSecond,
            base.map(run => run.requestsPerSecond),
          )
    return [
      name,
      Math.round(median(perSecond)).toString(),
      withSpread(ratios, 3),
      milliseconds(median(own.map(run => run.p50Ms))),
      milliseconds(median(own.map(run => run.p99Ms))),
      Math.round(median(own.map(run => run.appUs))).toString(),
      own.some(run => run.databaseUs > 0) ? Math.round(median(own.map(run => run.databaseUs))).toString() : '',
      Math.round(median(own.map(run => run.loadUs))).toString(),
      proofOf(proof, own),
    ]
  })
  return [markdownTable(head, rows), ...leftOut.map(text => `\nLeft out: ${text}.`)].join('\n')
}

function proofOf(proof: SubjectRuns['proof'], runs: SubjectRuns['runs']): string {
  const refused = runs.reduce((sum, run) => sum + refusalsOf(run), 0)
  const counted = proof === undefined ? '' : `${proof.acknowledged} = ${proof.rows} = ${proof.completed}`
  return refused === 0 ? counted : `${counted} (${refused} refused)`
}

export function faultsOf({ subjects }: ScenarioResult): string[] {
  return subjects.flatMap(({ name, faults }) => [...new Set(faults)].map(fault => `${name}: ${fault}`))
}

export function settingsOf({ subjects }: ScenarioResult): string[] {
  return subjects.map(({ settings }) => settings).filter(text => text !== '')
}

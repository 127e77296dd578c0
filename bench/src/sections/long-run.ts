/** One long run of a few subjects, for what short repetitions cannot show: the tail of the latency. */
import type { Context } from '../context.ts'
import { markdownTable, milliseconds } from '../report/table.ts'
import { measureScenario, type Run, type Scenario, type ScenarioResult } from '../scenario.ts'
import type { Figure } from '../statistics.ts'
import { comparisons } from './compare.ts'

export interface LongRun {
  readonly subjects: readonly string[]
  readonly seconds: number
}

const latencies = {
  average: run => run.averageMs,
  p95: run => run.p95Ms,
  p99: run => run.p99Ms,
} as const satisfies Readonly<Record<string, (run: Run) => number>>

/** On servers of their own, under the load of the section. */
export function measureLongRun(scenario: Scenario, long: LongRun, context: Context): Promise<ScenarioResult> {
  return measureScenario({ ...scenario, ...long, starts: 1 }, { ...context, repetitions: 1 })
}

export function longRunTable({ subjects }: ScenarioResult): string {
  const rows = subjects.flatMap(({ name, runs }) =>
    runs.map(run => [
      name,
      (run.acknowledged / run.requestsPerSecond).toFixed(1),
      Math.round(run.requestsPerSecond).toString(),
      ...Object.values(latencies).map(by => milliseconds(by(run))),
    ]),
  )
  const head = ['subject', 'seconds', 'req/s', ...Object.keys(latencies).map(name => `${name} ms`)]
  return ['In one long run:', markdownTable(head, rows)].join('\n\n')
}

export function longRunFigures(result: ScenarioResult): Record<string, Figure> {
  return comparisons(
    result,
    Object.fromEntries(
      Object.entries(latencies).map(([name, by]) => [
        `${name} added in a long run`,
        {
          of: 'postgres',
          over: 'bare',
          by,
          combine: (a: number, b: number) => a - b,
          unit: 'ms',
          what: `what PostgreSQL adds to the ${name} of the bare server in one long run`,
        },
      ]),
    ),
  )
}

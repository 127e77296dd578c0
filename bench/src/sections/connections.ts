/** Throughput and latency by the number of connections: what the plots show. */
import { faultsOf, markdownTable, milliseconds } from '../report/table.ts'
import { measureScenario, type Run, type ScenarioResult } from '../scenario.ts'
import type { Section, SectionResult } from '../section.ts'
import { median, pairwise } from '../statistics.ts'
import { comparisons } from './compare.ts'

const manyConnections = 256
const counts = [1, 8, 64, manyConnections]
const comparedAtMany = {
  'postgres over bare at 256': {
    of: 'postgres',
    over: 'bare',
    what: 'throughput over the bare server at 256 connections',
  },
} as const

export interface Curve {
  readonly name: string
  /** One for each number of connections: medians over the repetitions. */
  readonly points: readonly {
    readonly connections: number
    readonly ratio: number
    readonly p50Ms: number
    readonly p99Ms: number
  }[]
}

export const connections: Section = {
  name: 'connections',
  what: 'no work, new keys, by 1, 8, 64 and 256 connections',
  async run(context) {
    const subjects = [
      'bare',
      'postgres',
      'floor',
      'naive',
      'sqlite',
      'powertools-redis',
      'node-idempotency-redis',
      'steadykey-postgres',
    ]
    const scenario = { name: 'connections', subjects, connections: counts, seconds: 0.3, starts: 2 }
    const result = await measureScenario(scenario, context)
    const curves = curvesOf(result)
    return {
      markdown: markdownOf(curves),
      figures: comparisons(withConnections(result, manyConnections), comparedAtMany),
      faults: faultsOf(result),
      data: { curves, ...result },
    }
  },
}

function withConnections({ subjects, leftOut }: ScenarioResult, connections: number): ScenarioResult {
  const runsOf = (runs: readonly Run[]) => runs.filter(run => run.connections === connections)
  return { subjects: subjects.map(subject => ({ ...subject, runs: runsOf(subject.runs) })), leftOut }
}

/** Out of this section's own result. */
export function curvesIn(result: SectionResult | undefined): readonly Curve[] {
  return (result?.data as { curves: readonly Curve[] } | undefined)?.curves ?? []
}

function curvesOf({ subjects }: ScenarioResult): Curve[] {
  const bare = subjects.find(({ id }) => id === 'bare')
  return subjects.map(({ name, runs }) => ({
    name,
    points: counts.map(connections => {
      const at = (all: typeof runs) => all.filter(run => run.connections === connections)
      const perSecond = (all: typeof runs) => at(all).map(run => run.requestsPerSecond)
      return {
        connections,
        ratio: median(pairwise(perSecond(runs), perSecond(bare?.runs ?? []))),
        p50Ms: median(at(runs).map(run => run.p50Ms)),
        p99Ms: median(at(runs).map(run => run.p99Ms)),
      }
    }),
  }))
}

function markdownOf(curves: readonly Curve[]): string {
  const head = ['subject', ...counts.map(count => `${count === 1 ? '1 connection' : `${count} connections`}`)]
  const rows = curves.map(({ name, points }) => [
    name,
    ...points.map(
      ({ ratio, p50Ms, p99Ms }) => `${ratio.toFixed(3)} · ${milliseconds(p50Ms)} / ${milliseconds(p99Ms)} ms`,
    ),
  ])
  return ['### By connections: ratio to the bare server · p50 / p99', markdownTable(head, rows)].join('\n\n')
}

/** What README shows of a run: the cost of a request, beside what people would use instead. */
import type { Run, ScenarioResult } from '../scenario.ts'
import type { SectionResult } from '../section.ts'
import { median } from '../statistics.ts'
import { subjectOf, type Subject } from '../subjects.ts'
import { markdownTable } from './table.ts'

/** Medians over the repetitions. Processor time is per request. */
export interface Cost {
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly appUs: number
  readonly databaseUs: number
}

/** By section, then by the id of the subject. */
export type Costs = Readonly<Record<string, Readonly<Record<string, Cost>>>>

const sectionsShown = ['saturation', 'work', 'replay', 'atomic']
const subjectsShown = [
  'bare',
  'postgres',
  'sqlite',
  'naive',
  'steadykey-postgres',
  'steadykey-redis',
  'powertools-redis',
  'node-idempotency-redis',
]

export function costsOf(sections: ReadonlyMap<string, SectionResult>): Costs {
  return Object.fromEntries(
    sectionsShown.flatMap(name => {
      const section = sections.get(name)
      if (section === undefined) return []
      // These four sections store the result of their scenario as it is.
      const { subjects } = section.data as ScenarioResult
      return [[name, Object.fromEntries(subjects.map(({ id, runs }) => [id, costOf(runs)]))]]
    }),
  )
}

function costOf(runs: readonly Run[]): Cost {
  const of = (value: (run: Run) => number) => median(runs.map(value))
  return {
    requestsPerSecond: of(run => run.requestsPerSecond),
    p50Ms: of(run => run.p50Ms),
    p99Ms: of(run => run.p99Ms),
    appUs: of(run => run.appUs),
    databaseUs: of(run => run.databaseUs),
  }
}

/** A table, and sentences that end with the run's conditions. A subject that was not measured has no row. */
export function costSummary(costs: Costs, conditions: string): string {
  const { saturation = {}, replay = {}, work = {}, atomic = {} } = costs
  const rows = subjectsShown.flatMap(id => {
    const cost = saturation[id]
    if (cost === undefined) return []
    const subject = subjectOf(id)
    return [
      [
        subject.guard === 'none' ? `no guard at all (${subject.name})` : subject.name,
        durability(subject),
        perSecond(cost),
        perSecond(replay[id]),
        microseconds(cost.appUs),
        microseconds(cost.databaseUs),
      ],
    ]
  })
  const head = ['guard', 'answer on disk before it is sent', 'new keys/s', 'replays/s', 'application µs', 'database µs']
  const sentences = [workSentence(work), atomicSentence(atomic), conditions].filter(text => text !== '')
  return `${markdownTable(head, rows)}\n\n${sentences.join(' ')}`
}

function durability({ guard, store }: Subject): string {
  if (guard === 'none') return ''
  // The benchmark's Redis appends to its file, and syncs it once a second.
  return store === 'redis' ? 'no, within a second' : 'yes'
}

function workSentence({ bare, postgres, naive }: Costs[string]): string {
  if (bare === undefined || postgres === undefined || naive === undefined) return ''
  return `With 50 ms of work in the handler and 50 connections, the server answers ${perSecond(bare)} requests a second without a guard, ${perSecond(postgres)} with Latchkey on PostgreSQL and ${perSecond(naive)} with the naive pair.`
}

function atomicSentence(atomic: Costs[string]): string {
  const { 'own-postgres': own, 'atomic-postgres': guarded } = atomic
  if (own === undefined || guarded === undefined) return ''
  return `A transaction of one insert runs ${perSecond(own)} times a second by itself, and ${perSecond(guarded)} times as an atomic operation.`
}

function perSecond(cost: Cost | undefined): string {
  return cost === undefined ? '' : Math.round(cost.requestsPerSecond).toLocaleString('en-US')
}

function microseconds(value: number): string {
  return value > 0 ? Math.round(value).toString() : ''
}

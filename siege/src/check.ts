/** The checker: a pure function of the recorded evidence. */
import { cacheFaults } from '../../test/servers/redis/redis-cache.ts'
import type { Evidence } from './evidence.ts'
import type { Run } from './app/runs.ts'

export interface Violation {
  readonly kind:
    | 'lost'
    | 'twice'
    | 'unclaimed'
    | 'never-ran'
    | 'untrue'
    | 'memory'
    | 'death'
    | 'unknown'
    | 'unfinished'
    | 'nothing-tried'
  readonly detail: string
}

export function check(evidence: Evidence): readonly Violation[] {
  return [
    ...checkInnocents(evidence),
    ...checkRuns(evidence),
    ...checkEnemies(evidence),
    ...checkApp(evidence),
    ...checkCache(evidence),
  ]
}

/** An enemy must not cost innocents anything: one refused request is one too many. */
function checkInnocents({ innocents }: Evidence): Violation[] {
  const lost = Object.entries(innocents.losses).map(([what, times]): Violation => ({
    kind: 'lost',
    detail: `${what}: ${times} times`,
  }))
  if (innocents.acknowledged.length > 0) return lost
  return [...lost, { kind: 'nothing-tried', detail: 'no innocent request succeeded' }]
}

function checkRuns({ runs, innocents }: Evidence): Violation[] {
  const all = [...runs.values()]
  const unclaimed = all.filter(each => each.some(isUnclaimed))
  const twice = all.filter(each => each.length > 1 && !each.some(isUnclaimed))
  const never = innocents.acknowledged.filter(id => !runs.has(id))
  return [
    ...twice.map((each): Violation => ({ kind: 'twice', detail: toldOf(each) })),
    // Allowed by the operation, but the store was never down: the machine was too slow for its time limit.
    ...unclaimed.map((each): Violation => ({ kind: 'unclaimed', detail: toldOf(each) })),
    ...never.map((id): Violation => ({
      kind: 'never-ran',
      detail: `${id} was acknowledged, but its handler did not run`,
    })),
  ]
}

const isUnclaimed = ({ fence }: Run) => fence === 0

function toldOf(runs: readonly Run[]): string {
  const each = runs.map(
    ({ attempt, fence }) => `attempt ${attempt} ${fence === 0 ? 'without a claim' : `fence ${fence}`}`,
  )
  return `${runs[0]?.operation} ${runs[0]?.id} ran ${runs.length} times: ${each.join(', ')}`
}

function checkEnemies({ enemies }: Evidence): Violation[] {
  return Object.entries(enemies).flatMap(([name, { attacks, whole, heard, untrue }]) => {
    const wrong = untrue.map((detail): Violation => ({ kind: 'untrue', detail: `${name}: ${detail}` }))
    // An enemy that never attacked, was never answered or never completed an attack proves nothing.
    if (whole > 0 && Object.keys(heard).length > 0) return wrong
    const detail = `${name}: ${attacks} attacks, ${whole} completed, ${Object.keys(heard).length} kinds of answers`
    return [...wrong, { kind: 'nothing-tried' as const, detail }]
  })
}

/** A cache that answered nothing, or that nothing happened to, proves nothing. */
function checkCache({ cache }: Evidence): Violation[] {
  if (cache === undefined) return []
  const idle = cacheFaults.filter(fault => (cache.faults[fault] ?? 0) === 0)
  const untried = idle.map((fault): Violation => ({ kind: 'nothing-tried', detail: `the cache was never ${fault}` }))
  if (cache.hits > 0) return untried
  return [...untried, { kind: 'nothing-tried', detail: 'nothing was answered from the cache' }]
}

function checkApp({ app: { deaths, peakMb, peakMbMax }, rows }: Evidence): Violation[] {
  const violations: Violation[] = deaths.map(detail => ({ kind: 'death', detail }))
  if (peakMb > peakMbMax)
    violations.push({ kind: 'memory', detail: `${peakMb} MB, above the limit of ${peakMbMax} MB` })
  if (rows.unknown > 0) violations.push({ kind: 'unknown', detail: `${rows.unknown} rows, although no process died` })
  if (rows.unfinished > 0) violations.push({ kind: 'unfinished', detail: `${rows.unfinished} rows` })
  return violations
}

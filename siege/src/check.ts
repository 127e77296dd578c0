/** The checker: a pure function of the recorded evidence. */
import type { Evidence } from './evidence.ts'

export interface Violation {
  readonly kind:
    | 'lost'
    | 'twice'
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
  return [...checkInnocents(evidence), ...checkRuns(evidence), ...checkEnemies(evidence), ...checkApp(evidence)]
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
  const twice = [...runs].filter(([, times]) => times > 1)
  const never = innocents.acknowledged.filter(id => !runs.has(id))
  return [
    ...twice.map(([id, times]): Violation => ({ kind: 'twice', detail: `${id} ran ${times} times` })),
    ...never.map((id): Violation => ({
      kind: 'never-ran',
      detail: `${id} was acknowledged, but its handler did not run`,
    })),
  ]
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

function checkApp({ app: { deaths, peakMb, peakMbMax }, rows }: Evidence): Violation[] {
  const violations: Violation[] = deaths.map(detail => ({ kind: 'death', detail }))
  if (peakMb > peakMbMax)
    violations.push({ kind: 'memory', detail: `${peakMb} MB, above the limit of ${peakMbMax} MB` })
  if (rows.unknown > 0) violations.push({ kind: 'unknown', detail: `${rows.unknown} rows, although no process died` })
  if (rows.unfinished > 0) violations.push({ kind: 'unfinished', detail: `${rows.unfinished} rows` })
  return violations
}

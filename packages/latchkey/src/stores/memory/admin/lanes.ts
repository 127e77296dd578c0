/** The lanes of the outbox, one by one. */
import type { Lanes } from '../../../ports/faculties/admin.ts'
import { type LaneFigures, laneStates } from '../../shared/outbox/lane-state.ts'
import { type Aside, asideOf, type Lane } from '../outbox/lanes.ts'
import type { Tables } from '../tables.ts'

export function lanes({ outbox, now }: Tables): Lanes {
  return { lanes: laneStates(outbox.lanes.map(lane => figuresOf(lane, now()))), partial: false }
}

function figuresOf(lane: Lane, nowMs: number): LaneFigures {
  const all = asideOf(lane)
  const aside = all.filter(one => one.parkedAtMs === undefined)
  const waiting = [...lane.fresh, ...aside.map(({ message }) => message)]
  const oldestAtMs = waiting.reduce((oldest, { createdAtMs }) => Math.min(oldest, createdAtMs), nowMs)
  const { leaseId: by, lockedUntilMs = nowMs } = lane
  return {
    lane: lane.lane,
    fresh: lane.fresh.length,
    aside: aside.length,
    behind: countBehind(all),
    parked: all.length - aside.length,
    isParkedCut: false,
    oldestMs: nowMs - oldestAtMs,
    lease: by === undefined ? undefined : { by, leftMs: lockedUntilMs - nowMs },
  }
}

/** How many wait behind the first of their aggregate, if that is parked. */
function countBehind(all: readonly Aside[]): number {
  const heads = new Map<string, Aside>()
  let behind = 0
  for (const one of all) {
    const { aggregate } = one.message
    if (aggregate === undefined) continue
    if (one.parkedAtMs === undefined && heads.get(aggregate)?.parkedAtMs !== undefined) behind += 1
    if (one.blocks && !heads.has(aggregate)) heads.set(aggregate, one)
  }
  return behind
}

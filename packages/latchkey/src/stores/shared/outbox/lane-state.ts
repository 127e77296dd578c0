/** What a store has counted of a lane, to what the port shows. */
import type { Counted, LaneState } from '../../../ports/faculties/admin.ts'

/** A screen asks for it every few seconds: what a person does about 1,000 is what they do about more. */
export const laneCountMax = 1_000
/** One more than is shown, so that a full count can be distinguished from one that was cut. */
export const laneReadMax: number = laneCountMax + 1
/** How many parked messages are looked at, over all lanes. */
export const parkedReadMax: number = 8 * laneCountMax

export interface LaneFigures {
  readonly lane: number
  /** After the cursor, and aside without being parked; at most `laneReadMax` of each. */
  readonly fresh: number
  readonly aside: number
  readonly behind: number
  readonly parked: number
  /** Not all parked messages were looked at. */
  readonly isParkedCut: boolean
  readonly oldestMs: number
  readonly lease: LaneState['lease']
}

export function laneStates(all: readonly LaneFigures[]): readonly LaneState[] {
  return all
    .map(laneState)
    .filter(({ waiting, parked, lease }) => waiting.count + parked.count > 0 || lease !== undefined)
}

function laneState({ lane, fresh, aside, behind, parked, isParkedCut, oldestMs, lease }: LaneFigures): LaneState {
  return {
    lane,
    waiting: counted(fresh + aside),
    parked: counted(parked, isParkedCut),
    // Of those aside no more were looked at.
    behind: counted(behind, aside > laneCountMax),
    oldestMs: Math.max(0, Math.ceil(oldestMs)),
    lease,
  }
}

function counted(found: number, isCut = false): Counted {
  return { count: Math.min(found, laneCountMax), more: isCut || found > laneCountMax }
}

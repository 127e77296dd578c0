/** The lanes of the outbox, one by one. */
import type { Lanes } from '../../../ports/faculties/admin.ts'
import { type LaneFigures, laneReadMax, laneStates, parkedReadMax } from '../../shared/outbox/lane-state.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs } from '../keys/row.ts'
import { rowsAs } from './columns.ts'

interface LaneRow {
  readonly lane: number
  readonly cursor: number
  readonly lease_id: string | null
  readonly locked_until_ms: number | null
}

const lanesSql = 'SELECT lane, cursor, lease_id, locked_until_ms FROM latchkey_outbox_lanes ORDER BY lane'

const parkedSql = `
  SELECT p.lane, COUNT(*) AS count FROM (
    SELECT lane FROM latchkey_outbox_parked WHERE parked_at_ms IS NOT NULL ORDER BY id LIMIT ${parkedReadMax + 1}) AS p
  GROUP BY p.lane`

export const freshSql: string = `
  SELECT COUNT(*) AS count, MIN(m.created_at_ms) AS oldest FROM (
    SELECT o.created_at_ms FROM latchkey_outbox AS o WHERE o.lane = ?1 AND o.id > ?2 ORDER BY o.id LIMIT ${laneReadMax}) AS m`

// Those that are not due stand first in the index: as a rule they wait behind the first of their aggregate.
export const asideSql: string = `
  SELECT COUNT(*) AS count, MIN(m.created_at_ms) AS oldest, COALESCE(SUM(m.behind), 0) AS behind FROM (
    SELECT o.created_at_ms, COALESCE((
      SELECT q.parked_at_ms IS NOT NULL AND q.id < p.id FROM latchkey_outbox_parked AS q
      WHERE q.lane = p.lane AND q.aggregate = p.aggregate AND q.blocks ORDER BY q.id LIMIT 1), 0) AS behind
    FROM latchkey_outbox_parked AS p JOIN latchkey_outbox AS o ON o.id = p.id
    WHERE p.lane = ?1 AND p.parked_at_ms IS NULL ORDER BY p.due_at_ms LIMIT ${laneReadMax}) AS m`

interface CountRow {
  readonly count: number
  readonly oldest: number | null
}

export function lanes(handle: Handle): Lanes {
  const parked = rowsAs<{ lane: number; count: number }>(handle, parkedSql)
  const isParkedCut = parked.reduce((sum, { count }) => sum + count, 0) > parkedReadMax
  const figures = rowsAs<LaneRow>(handle, lanesSql).map(row => ({
    ...figuresOf(handle, row),
    parked: parked.find(({ lane }) => lane === row.lane)?.count ?? 0,
    isParkedCut,
  }))
  return { lanes: laneStates(figures), partial: false }
}

function figuresOf(handle: Handle, row: LaneRow): Omit<LaneFigures, 'parked' | 'isParkedCut'> {
  const { lane, cursor, lease_id: by, locked_until_ms: lockedUntilMs } = row
  const nowMs = readNowMs(handle)
  const [fresh] = rowsAs<CountRow>(handle, freshSql, [lane, cursor])
  const [aside] = rowsAs<CountRow & { readonly behind: number }>(handle, asideSql, [lane])
  return {
    lane,
    fresh: fresh?.count ?? 0,
    aside: aside?.count ?? 0,
    behind: aside?.behind ?? 0,
    oldestMs: nowMs - Math.min(fresh?.oldest ?? nowMs, aside?.oldest ?? nowMs),
    lease: by === null ? undefined : { by, leftMs: (lockedUntilMs ?? nowMs) - nowMs },
  }
}

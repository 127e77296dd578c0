/** Leasing a lane: one relay at a time, by the file's clock; the fence decides who may write. */
import type { LaneLease, LaneResult } from '../../../ports/outbox.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs } from '../keys/row.ts'
import { nowMsSql } from '../migrations/index.ts'

/** The lane row `l`, if the lease `?1, ?2, ?3` still holds it. */
export const isMineSql = 'l.lane = ?1 AND l.fence = ?2 AND l.lease_id = ?3'

export function leaseValues({ lane, fence, leaseId }: LaneLease): [number, number, string] {
  return [lane, fence, leaseId]
}

/** The row `p` from aside may be delivered now: due, and nothing of its aggregate before it is parked or waits. */
export const isDeliverableSql: string = `
  p.parked_at_ms IS NULL AND p.due_at_ms <= ${nowMsSql} AND NOT EXISTS (
    SELECT 1 FROM latchkey_outbox_parked AS q
    WHERE q.lane = p.lane AND q.aggregate = p.aggregate AND q.id < p.id AND q.blocks
      AND (q.parked_at_ms IS NOT NULL OR q.due_at_ms IS NULL OR q.due_at_ms > ${nowMsSql}))`

const freeSql = `
  SELECT l.lane FROM latchkey_outbox_lanes AS l
  WHERE (l.locked_until_ms IS NULL OR l.locked_until_ms <= ${nowMsSql}) AND (
    EXISTS (SELECT 1 FROM latchkey_outbox AS o WHERE o.lane = l.lane AND o.id > l.cursor)
    OR EXISTS (SELECT 1 FROM latchkey_outbox_parked AS p WHERE p.lane = l.lane AND ${isDeliverableSql}))
  ORDER BY l.leased_at_ms NULLS FIRST, l.lane LIMIT 1`

export function hasWork(handle: Handle): boolean {
  return handle.rows(freeSql).length > 0
}

// A lease that ran out means that its relay died; when it was delivering a suspect, that one has been counted already.
const leaseSql = `
  UPDATE latchkey_outbox_lanes AS l
  SET fence = l.fence + 1, lease_id = ?2, leased_at_ms = ?3, locked_until_ms = ?4, probing = 0,
      crashes = l.crashes + (l.locked_until_ms IS NOT NULL AND NOT l.probing)
  WHERE l.lane = ?1 RETURNING lane, fence`

export function leaseLane(
  handle: Handle,
  { leaseId, leaseMs }: { leaseId: string; leaseMs: number },
): LaneLease | undefined {
  const [free] = handle.rows(freeSql)
  if (free === undefined) return undefined
  const nowMs = readNowMs(handle)
  const [row] = handle.rows(leaseSql, [Number(free.lane), leaseId, nowMs, Math.ceil(nowMs + leaseMs)])
  return row && { lane: Number(row.lane), fence: Number(row.fence), leaseId }
}

const renewSql = `
  UPDATE latchkey_outbox_lanes AS l SET locked_until_ms = ${nowMsSql} + ?4 WHERE ${isMineSql} RETURNING lane`

export function renewLane(handle: Handle, lease: LaneLease, leaseMs: number): LaneResult {
  return handle.rows(renewSql, [...leaseValues(lease), Math.ceil(leaseMs)]).length === 1 ? 'written' : 'lease-lost'
}

const releaseSql = `
  UPDATE latchkey_outbox_lanes AS l SET locked_until_ms = NULL, lease_id = NULL, crashes = 0, probing = 0
  WHERE ${isMineSql} RETURNING lane`

export function releaseLane(handle: Handle, lease: LaneLease): LaneResult {
  return handle.rows(releaseSql, leaseValues(lease)).length === 1 ? 'written' : 'lease-lost'
}

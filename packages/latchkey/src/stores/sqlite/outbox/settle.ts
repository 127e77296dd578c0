/** The end of a batch, in one transaction. */
import type { DeliveryEnd, LaneLease, LaneResult, Settlement } from '../../../ports/outbox.ts'
import { waitingPositions, withFailure } from '../../shared/outbox/batch.ts'
import { historyFrom, wakeMax } from '../../shared/outbox/message.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { isMineSql, leaseValues } from './lanes.ts'

const laneSql = `
  UPDATE latchkey_outbox_lanes AS l
  SET crashes = 0, probing = 0, cursor = COALESCE(?4, l.cursor), locked_until_ms = ?5,
      lease_id = CASE WHEN ?5 IS NULL THEN NULL ELSE l.lease_id END
  WHERE ${isMineSql} RETURNING lane`

export function settleBatch(handle: Handle, lease: LaneLease, { batch, ends, then }: Settlement): LaneResult {
  const nowMs = readNowMs(handle)
  const cursor = batch.through === undefined ? null : Number(batch.through)
  const lockedUntilMs = then.kind === 'keep' ? Math.ceil(nowMs + then.leaseMs) : null
  // First and fenced: a relay that lost the lane writes nothing at all.
  if (handle.rows(laneSql, [...leaseValues(lease), cursor, lockedUntilMs]).length === 0) return 'lease-lost'
  const freed = new Set<string>()
  for (const end of ends) {
    const aggregate = end.kind === 'delivered' ? deliver(handle, end, nowMs) : setAside(handle, end, nowMs)
    if (aggregate !== null) freed.add(aggregate)
  }
  // After the others: whether something stands before them is seen in the table.
  for (const position of inOrder(waitingPositions(batch, ends))) standBehind(handle, position, nowMs)
  for (const aggregate of freed) handle.rows(wakeSql, [lease.lane, aggregate, nowMs])
  return 'written'
}

function inOrder(positions: readonly string[]): readonly string[] {
  return positions.toSorted((one, other) => Number(one) - Number(other))
}

const namedSql = `INSERT INTO latchkey_outbox_delivered VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
const goneSql = 'DELETE FROM latchkey_outbox_parked WHERE id = ?1 RETURNING aggregate'

type End<Kind extends DeliveryEnd['kind']> = Extract<DeliveryEnd, { kind: Kind }>

/** The aggregate whose next message may go, if this one stood before it. */
function deliver(handle: Handle, { position, downstreamId }: End<'delivered'>, nowMs: number): string | null {
  const id = Number(position)
  if (downstreamId !== undefined) handle.rows(namedSql, [id, storable(downstreamId), nowMs])
  const [gone] = handle.rows(goneSql, [id])
  return typeof gone?.aggregate === 'string' ? gone.aggregate : null
}

const historySql = 'SELECT history FROM latchkey_outbox_parked WHERE id = ?1'
const failedSql = `
  INSERT INTO latchkey_outbox_parked
    (id, lane, aggregate, blocks, attempts, due_at_ms, parked_at_ms, cause, history)
  SELECT o.id, o.lane, o.aggregate, ?2 AND o.aggregate IS NOT NULL, 1, ?3, ?4, ?5, ?6
  FROM latchkey_outbox AS o WHERE o.id = ?1
  ON CONFLICT (id) DO UPDATE SET
    attempts = attempts + 1, blocks = excluded.blocks, suspect = 0, due_at_ms = excluded.due_at_ms,
    parked_at_ms = excluded.parked_at_ms, cause = excluded.cause, history = excluded.history
  RETURNING aggregate, blocks`

function setAside(handle: Handle, { position, error, next, aggregate }: End<'failed'>, nowMs: number): string | null {
  const id = Number(position)
  const cause = storable(error)
  const before = historyFrom(handle.rows(historySql, [id])[0]?.history ?? '[]')
  const history = withFailure(before, { atMs: nowMs, error: cause })
  const dueAtMs = next.kind === 'retry' ? Math.ceil(nowMs + next.dueInMs) : null
  const parkedAtMs = next.kind === 'park' ? nowMs : null
  const values = [id, aggregate === 'block', dueAtMs, parkedAtMs, cause, JSON.stringify(history)]
  const [row] = handle.rows(failedSql, values)
  return row?.blocks === 0 && typeof row.aggregate === 'string' ? row.aggregate : null
}

// Null where something of the aggregate stands before it, which wakes it when it goes; due now otherwise.
const behindSql = `
  INSERT INTO latchkey_outbox_parked (id, lane, aggregate, blocks, due_at_ms)
  SELECT o.id, o.lane, o.aggregate, o.aggregate IS NOT NULL,
    CASE WHEN NOT EXISTS (SELECT 1 FROM latchkey_outbox_parked AS q
      WHERE q.lane = o.lane AND q.aggregate = o.aggregate AND q.blocks AND q.id < o.id) THEN ?2 END
  FROM latchkey_outbox AS o WHERE o.id = ?1
  ON CONFLICT (id) DO NOTHING`

function standBehind(handle: Handle, position: string, nowMs: number): void {
  handle.rows(behindSql, [Number(position), nowMs])
}

// The next messages of the aggregate that waited behind one that is gone.
export const wakeSql: string = `
  UPDATE latchkey_outbox_parked SET due_at_ms = ?3 WHERE id IN (
    SELECT q.id FROM latchkey_outbox_parked AS q
    WHERE q.lane = ?1 AND q.aggregate = ?2 AND q.due_at_ms IS NULL AND q.parked_at_ms IS NULL
    ORDER BY q.id LIMIT ${wakeMax})`

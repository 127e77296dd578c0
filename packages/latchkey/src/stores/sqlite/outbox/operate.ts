/** What people and the reaper do with messages. */
import type { Outbox, OutboxLag, ParkedMessage, Redrive } from '../../../ports/outbox.ts'
import type { Act } from '../../../ports/store.ts'
import { historyFrom, lagCountMax, parkedListMax } from '../../shared/outbox/message.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { messageColumns, messageFrom } from './next.ts'
import { nowMsSql } from '../migrations/index.ts'

const parkedSql = `
  SELECT ${messageColumns}, p.attempts, p.crashes, p.cause, p.history, p.parked_at_ms
  FROM latchkey_outbox_parked AS p JOIN latchkey_outbox AS o ON o.id = p.id
  WHERE p.parked_at_ms IS NOT NULL AND p.id > ?1 ORDER BY p.id LIMIT ?2`

export function parked(handle: Handle, { limit, after }: { limit: number; after?: string }): readonly ParkedMessage[] {
  return handle.rows(parkedSql, [rowid(after) ?? 0, Math.min(limit, parkedListMax)]).map(row => ({
    ...messageFrom(row),
    cause: String(row.cause),
    history: historyFrom(row.history),
    parkedAtMs: Number(row.parked_at_ms),
  }))
}

/** What people hand in is not always a position. */
export function rowid(position: string | undefined): number | undefined {
  return position !== undefined && /^\d{1,15}$/.test(position) ? Number(position) : undefined
}

const redriveSql = `
  UPDATE latchkey_outbox_parked SET parked_at_ms = NULL, due_at_ms = ?2, attempts = 0, crashes = 0
  WHERE id = ?1 AND parked_at_ms IS NOT NULL RETURNING id`
const auditSql = `INSERT INTO latchkey_outbox_audit (id, act, by, reason, at_ms) VALUES (?1, 'redrive', ?2, ?3, ?4)`

/** In place: deleted and inserted again, its history would be lost. */
export function redrive(
  handle: Handle,
  position: string,
  { by, reason }: Act,
): Awaited<ReturnType<Outbox<unknown>['redrive']>> {
  const id = rowid(position)
  const atMs = readNowMs(handle)
  if (id === undefined || handle.rows(redriveSql, [id, atMs]).length === 0) return { kind: 'not-found' }
  handle.rows(auditSql, [id, storable(by), storable(reason), atMs])
  return { kind: 'redriven' }
}

export function redrives(handle: Handle, position: string): readonly Redrive[] {
  const found = handle.rows('SELECT by, reason, at_ms FROM latchkey_outbox_audit WHERE id = ?1 ORDER BY seq', [
    rowid(position) ?? null,
  ])
  return found.map(row => ({ by: String(row.by), reason: String(row.reason), atMs: Number(row.at_ms) }))
}

export function downstreamId(handle: Handle, position: string): string | undefined {
  const [row] = handle.rows('SELECT downstream_id FROM latchkey_outbox_delivered WHERE id = ?1', [
    rowid(position) ?? null,
  ])
  return row && String(row.downstream_id)
}

// Below the cursor of its lane and not aside: delivered.
const pruneSql = `
  DELETE FROM latchkey_outbox WHERE id IN (
    SELECT o.id FROM latchkey_outbox_lanes AS l JOIN latchkey_outbox AS o ON o.lane = l.lane AND o.id <= l.cursor
    WHERE o.created_at_ms <= ?2 AND NOT EXISTS (SELECT 1 FROM latchkey_outbox_parked AS p WHERE p.id = o.id)
    LIMIT ?1)
  RETURNING id`

export function prune(handle: Handle, { limit, keepMs }: { limit: number; keepMs: number }): number {
  const pruned = handle.rows(pruneSql, [limit, Math.floor(readNowMs(handle) - keepMs)])
  for (const { id } of pruned) handle.rows('DELETE FROM latchkey_outbox_delivered WHERE id = ?1', [Number(id)])
  return pruned.length
}

const lagSql = `
  SELECT MIN(COUNT(*), ${lagCountMax}) AS waiting, ${nowMsSql} - MIN(created_at_ms) AS oldest_ms,
    (SELECT COUNT(*) FROM latchkey_outbox_parked WHERE parked_at_ms IS NOT NULL) AS parked
  FROM (
    SELECT * FROM (SELECT o.created_at_ms FROM latchkey_outbox_lanes AS l
      JOIN latchkey_outbox AS o ON o.lane = l.lane AND o.id > l.cursor LIMIT ${lagCountMax})
    UNION ALL
    SELECT * FROM (SELECT o.created_at_ms FROM latchkey_outbox_parked AS p
      JOIN latchkey_outbox AS o ON o.id = p.id WHERE p.parked_at_ms IS NULL LIMIT ${lagCountMax}))`

/** Nothing is held back: there is one writer, so no earlier transaction can still commit. */
export function lag(handle: Handle): OutboxLag {
  const [row] = handle.rows(lagSql)
  const oldestMs = Math.max(0, Number(row?.oldest_ms ?? 0))
  return { waiting: Number(row?.waiting ?? 0), heldBack: 0, oldestMs, parked: Number(row?.parked ?? 0) }
}

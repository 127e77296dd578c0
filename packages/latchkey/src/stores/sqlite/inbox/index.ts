/** Messages that consumers have parked. Each call is one write transaction, so that an act commits with its audit entry. */
import type {
  DiscardResult,
  InboxInspection,
  NewParkedInboxMessage,
  ParkedInbox,
  ParkedInboxListing,
  ParkedInboxPage,
  RedriveEnd,
  RedriveResult,
  TakenInboxMessage,
} from '../../../ports/faculties/inbox.ts'
import type { Act, OwnerResult } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import { pageSize } from '../../shared/listing.ts'
import {
  actDetail,
  actOf,
  type InboxActRow,
  listedOf,
  parkedCountMax,
  type ParkedHeadRow,
  parkedOf,
  parkedPage,
  type ParkedRow,
  seqAfter,
} from '../../shared/inbox/parked-row.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import type { SqliteParameter } from '../driver.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { nowMsSql } from '../migrations/index.ts'

export function sqliteInbox(database: Database): ParkedInbox {
  return {
    park: message => database.write(handle => park(handle, message)),
    list: listing => database.read(handle => list(handle, listing)),
    inspect: id => database.snapshot(handle => inspect(handle, id)),
    redrive: (id, act, as) => database.write(handle => redrive(handle, id, { act, as })),
    discard: (id, act) => database.write(handle => discard(handle, id, act)),
    take: which => database.write(handle => take(handle, which)),
    renew: (taken, leaseMs) => database.write(handle => renew(handle, taken, leaseMs)),
    settle: (taken, end) => database.write(handle => settle(handle, taken, end)),
    waiting: () => database.read(handle => Number(handle.rows(waitingSql)[0]?.waiting)),
  }
}

const waitingSql = `SELECT COUNT(*) AS waiting FROM (
  SELECT 1 FROM latchkey_inbox_parked WHERE due_at_ms IS NULL LIMIT ${parkedCountMax})`

const headColumns = `p.id, p.seq, p.consumer, p.operation, p.source, p.message_id, p.type, p.content_type, p.position, p.cause, p.key_id,
  p.attempts, p.times, p.first_parked_at_ms, p.parked_at_ms, p.redrive_as, p.due_at_ms - ${nowMsSql} AS due_in_ms`
const bodyColumns = 'p.is_json, p.headers, p.payload'

const parkSql = `
  INSERT INTO latchkey_inbox_parked (id, consumer, operation, source, message_id, type, content_type, position, cause, key_id, attempts,
    is_json, headers, payload, first_parked_at_ms, parked_at_ms)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15)
  ON CONFLICT (id) DO UPDATE SET cause = excluded.cause, attempts = excluded.attempts, times = times + 1,
    parked_at_ms = excluded.parked_at_ms`

function park(handle: Handle, message: NewParkedInboxMessage): void {
  const { id, consumer, operation, source, messageId, type, contentType, position, cause, rowId, attempts } = message
  const texts = [messageId, type, contentType, position].map(text => text ?? null)
  handle.run(parkSql, [
    ...[id, consumer, operation, source, ...texts, cause, rowId ?? null, attempts],
    ...[message.form === 'json' ? 1 : 0, JSON.stringify(message.headers), message.payload, readNowMs(handle)],
  ])
}

const listSql = `
  SELECT ${headColumns} FROM latchkey_inbox_parked AS p
  WHERE p.seq > ?1 AND (?2 IS NULL OR p.consumer = ?2) AND (?3 IS NULL OR p.cause = ?3) ORDER BY p.seq LIMIT ?4`

function list(handle: Handle, { consumer, cause, limit, after }: ParkedInboxListing): ParkedInboxPage {
  const parameters = [Number(seqAfter(after)), consumer ?? null, cause ?? null, pageSize(limit) + 1]
  return parkedPage(rowsOf<ParkedHeadRow>(handle, listSql, parameters), limit)
}

/** The statements name their columns as the rows have them, and the tables are STRICT. */
function rowsOf<Row>(handle: Handle, sql: string, parameters: readonly SqliteParameter[]): readonly Row[] {
  return handle.rows(sql, parameters) as readonly unknown[] as readonly Row[]
}

const messageSql = `SELECT ${headColumns}, ${bodyColumns} FROM latchkey_inbox_parked AS p WHERE p.id = ?1`
const actsSql = 'SELECT act, by, reason, detail, at_ms FROM latchkey_inbox_audit WHERE id = ?1 ORDER BY seq'

function inspect(handle: Handle, id: string): InboxInspection {
  const [row] = rowsOf<ParkedRow>(handle, messageSql, [id])
  return { message: row && parkedOf(row), audit: rowsOf<InboxActRow>(handle, actsSql, [id]).map(actOf) }
}

const seenSql = `
  SELECT ${headColumns}, COALESCE(p.locked_until_ms > ?2, 0) AS taken FROM latchkey_inbox_parked AS p WHERE p.id = ?1`
type SeenRow = ParkedHeadRow & { readonly taken: number }

const markSql = 'UPDATE latchkey_inbox_parked SET due_at_ms = ?2, redrive_as = ?3 WHERE id = ?1'

function redrive(
  handle: Handle,
  id: string,
  { act, as }: { readonly act: Act; readonly as: string | undefined },
): RedriveResult {
  const atMs = readNowMs(handle)
  const [row] = rowsOf<SeenRow>(handle, seenSql, [id, atMs])
  if (row === undefined) return { kind: 'not-found' }
  if (row.taken) return { kind: 'taken' }
  if (row.message_id === null && as === undefined) return { kind: 'needs-id' }
  handle.run(markSql, [id, atMs, as ?? null])
  addAct(handle, { id, act, kind: 'redrive', atMs, detail: actDetail(listedOf(row), as) })
  return { kind: 'redriven' }
}

function discard(handle: Handle, id: string, act: Act): DiscardResult {
  const atMs = readNowMs(handle)
  const [row] = rowsOf<SeenRow>(handle, seenSql, [id, atMs])
  if (row === undefined) return { kind: 'not-found' }
  if (row.taken) return { kind: 'taken' }
  handle.run('DELETE FROM latchkey_inbox_parked WHERE id = ?1', [id])
  addAct(handle, { id, act, kind: 'discard', atMs, detail: actDetail(listedOf(row)) })
  return { kind: 'discarded' }
}

interface NewAct {
  readonly id: string
  readonly act: Act
  readonly kind: 'redrive' | 'discard'
  readonly atMs: number
  readonly detail: string
}

const actSql = 'INSERT INTO latchkey_inbox_audit (id, act, by, reason, detail, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)'

function addAct(handle: Handle, { id, act, kind, atMs, detail }: NewAct): void {
  handle.run(actSql, [id, kind, storable(act.by), storable(act.reason), detail, atMs])
}

// A row of the key that is gone proves nothing: its message waits for an operator.
const oldestSql = `
  SELECT p.id FROM latchkey_inbox_parked AS p LEFT JOIN latchkey_keys AS k ON k.id = p.key_id
  WHERE p.consumer = ?1 AND p.operation = ?2 AND (p.due_at_ms IS NOT NULL OR p.cause = 'unknown')
    AND (p.locked_until_ms IS NULL OR p.locked_until_ms <= ?3)
    AND (p.due_at_ms <= ?3 OR p.due_at_ms IS NULL AND k.state <> ${stateCodes.unknown})
  ORDER BY p.seq LIMIT 1`
const leaseSql = 'UPDATE latchkey_inbox_parked SET run = run + 1, locked_until_ms = ?2 WHERE id = ?1'
const takenSql = `SELECT p.run, ${headColumns}, ${bodyColumns} FROM latchkey_inbox_parked AS p WHERE p.id = ?1`

type Taking = Parameters<ParkedInbox['take']>[0]

function take(handle: Handle, { consumer, operation, leaseMs }: Taking): TakenInboxMessage | undefined {
  const nowMs = readNowMs(handle)
  const [oldest] = rowsOf<{ readonly id: string }>(handle, oldestSql, [consumer, operation, nowMs])
  if (oldest === undefined) return undefined
  handle.run(leaseSql, [oldest.id, Math.ceil(nowMs + leaseMs)])
  const [row] = rowsOf<ParkedRow & { readonly run: number }>(handle, takenSql, [oldest.id])
  return row && { run: Number(row.run), message: parkedOf(row) }
}

const isOwned = 'id = ?1 AND run = ?2 AND locked_until_ms IS NOT NULL'
const renewSql = `UPDATE latchkey_inbox_parked SET locked_until_ms = ?3 WHERE ${isOwned}`
const endSql: Readonly<Record<RedriveEnd['kind'], string>> = {
  done: `DELETE FROM latchkey_inbox_parked WHERE ${isOwned}`,
  retry: `UPDATE latchkey_inbox_parked SET locked_until_ms = NULL, due_at_ms = ?3 WHERE ${isOwned}`,
  parked: `UPDATE latchkey_inbox_parked SET locked_until_ms = NULL, due_at_ms = NULL, redrive_as = NULL, cause = ?3, attempts = ?4,
    times = times + 1, parked_at_ms = ?5 WHERE ${isOwned}`,
}

function renew(handle: Handle, { run, message }: TakenInboxMessage, leaseMs: number): OwnerResult {
  return written(handle.run(renewSql, [message.id, run, Math.ceil(readNowMs(handle) + leaseMs)]))
}

function settle(handle: Handle, { run, message }: TakenInboxMessage, end: RedriveEnd): OwnerResult {
  return written(handle.run(endSql[end.kind], [message.id, run, ...endValues(end, readNowMs(handle))]))
}

function endValues(end: RedriveEnd, nowMs: number): readonly SqliteParameter[] {
  switch (end.kind) {
    case 'done':
      return []
    case 'retry':
      return [Math.ceil(nowMs + end.dueInMs)]
    case 'parked':
      return [end.cause, end.attempts, nowMs]
  }
}

function written(rows: number): OwnerResult {
  return rows === 1 ? 'written' : 'claim-lost'
}

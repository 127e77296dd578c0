/** Erasing what is stored of one tenant, a batch at a time, each in the write transaction of its call. */
import { hash } from 'node:crypto'
import { type ErasedBatch, type Erasure, type ErasureLeft, isEmpty } from '../../../ports/faculties/erasure.ts'
import { erasedText } from '../../shared/audit-detail.ts'
import { stateCodes, stepStateCodes } from '../../shared/codes.ts'
import { lagCountMax as countedMax } from '../../shared/outbox/message.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { deleteJournal } from '../steps/journal.ts'

const { completed, failed_retryable: failedRetryable } = stateCodes

export function sqliteErasure(database: Database): Erasure {
  return {
    mark: scope => database.write(handle => mark(handle, scope)),
    erase: which => database.write(handle => erase(handle, which)),
    left: scope => database.write(handle => left(handle, scope)),
  }
}

const markSql = `
  INSERT INTO latchkey_erasures (scope_hash, scope, marked_at_ms) VALUES (?1, ?2, ?3)
  ON CONFLICT (scope_hash) DO UPDATE SET scope = excluded.scope, marked_at_ms = excluded.marked_at_ms, ended_at_ms = NULL`

function mark(handle: Handle, scope: string): void {
  const text = storable(scope)
  handle.run(markSql, [hash('sha256', text), text, readNowMs(handle)])
}

const markedSql = 'SELECT marked_at_ms FROM latchkey_erasures WHERE scope = ?1'
const orphansSql = `
  DELETE FROM latchkey_evidence WHERE id IN (SELECT a.id FROM latchkey_audit AS a WHERE a.scope = ?1)
    AND NOT EXISTS (SELECT 1 FROM latchkey_keys AS k WHERE k.id = latchkey_evidence.id)`
const auditSql = `
  UPDATE latchkey_audit SET reason = '${erasedText}', detail = '', scope = NULL WHERE seq IN (
    SELECT a.seq FROM latchkey_audit AS a WHERE a.scope = ?1
    UNION
    SELECT a.seq FROM latchkey_keys AS k JOIN latchkey_audit AS a ON a.id = k.id
    WHERE k.scope = ?1 AND (a.reason <> '${erasedText}' OR a.detail <> '')
    LIMIT ?2)`
const messageAuditSql = `
  UPDATE latchkey_outbox_audit SET reason = '${erasedText}' WHERE seq IN (
    SELECT a.seq FROM latchkey_outbox AS o JOIN latchkey_outbox_audit AS a ON a.id = o.id
    WHERE o.scope = ?1 AND a.reason <> '${erasedText}' LIMIT ?2)`
// What stands beside the entries, before they lose their scope.
const adminSql = [
  `UPDATE latchkey_audit_details SET evidence = NULL WHERE evidence IS NOT NULL AND seq IN (
    SELECT a.seq FROM latchkey_audit AS a WHERE a.scope = ?1)`,
  'UPDATE latchkey_notes SET note = NULL WHERE scope = ?1 AND note IS NOT NULL',
  'DELETE FROM latchkey_proposals WHERE scope = ?1',
]
const linesSql = `
  UPDATE latchkey_audit_records SET scope = NULL, fingerprint = NULL WHERE seq IN (
    SELECT r.seq FROM latchkey_audit_records AS r WHERE r.scope = ?1 LIMIT ?2)`
const rowsSql = `
  DELETE FROM latchkey_keys WHERE id IN (
    SELECT k.id FROM latchkey_keys AS k
    WHERE k.scope = ?1 AND k.created_at_ms <= ?3 AND (k.state = ${completed} OR k.state = ${failedRetryable}
      AND k.parked_at_ms IS NULL
      AND NOT EXISTS (SELECT 1 FROM latchkey_steps AS p WHERE p.id = k.id AND p.state = ${stepStateCodes.open}))
    LIMIT ?2)
  RETURNING id`
const messagesSql = `
  DELETE FROM latchkey_outbox WHERE id IN (
    SELECT o.id FROM latchkey_outbox AS o JOIN latchkey_outbox_lanes AS l ON l.lane = o.lane AND o.id <= l.cursor
    WHERE o.scope = ?1 AND o.created_at_ms <= ?3
      AND NOT EXISTS (SELECT 1 FROM latchkey_outbox_parked AS p WHERE p.id = o.id)
    LIMIT ?2)
  RETURNING id`

/** In this order: the audit of a row is found through the row, and the evidence of a forgotten one through its audit. */
function erase(handle: Handle, options: { readonly scope: string; readonly limit: number }): ErasedBatch {
  const scope = storable(options.scope)
  const { limit } = options
  const [marked] = handle.rows(markedSql, [scope])
  if (marked === undefined) return { rows: 0, messages: 0, auditTexts: 0, auditLines: 0 }
  const markedAtMs = Number(marked.marked_at_ms)
  handle.run(orphansSql, [scope])
  for (const sql of adminSql) handle.run(sql, [scope])
  const blanked = {
    auditTexts: handle.run(auditSql, [scope, limit]) + handle.run(messageAuditSql, [scope, limit]),
    auditLines: handle.run(linesSql, [scope, limit]),
  }
  if (blanked.auditTexts > 0) return { rows: 0, messages: 0, ...blanked }
  const rows = handle.rows(rowsSql, [scope, limit, markedAtMs])
  for (const { id } of rows) {
    handle.run('DELETE FROM latchkey_outcomes WHERE id = ?1', [String(id)])
    handle.run('DELETE FROM latchkey_evidence WHERE id = ?1', [String(id)])
    deleteJournal(handle, String(id))
  }
  const messages = handle.rows(messagesSql, [scope, limit, markedAtMs])
  for (const { id } of messages) handle.run('DELETE FROM latchkey_outbox_delivered WHERE id = ?1', [Number(id)])
  return { rows: rows.length, messages: messages.length, ...blanked }
}

const leftSql = `
  SELECT
    (SELECT COUNT(*) FROM (SELECT 1 FROM latchkey_keys AS k WHERE k.scope = ?1 AND k.created_at_ms <= ?2 LIMIT ${countedMax})) AS rows,
    (SELECT COUNT(*) FROM (SELECT 1 FROM latchkey_outbox AS o WHERE o.scope = ?1 AND o.created_at_ms <= ?2 LIMIT ${countedMax})) AS messages`

function left(handle: Handle, given: string): ErasureLeft {
  const scope = storable(given)
  const [marked] = handle.rows(markedSql, [scope])
  if (marked === undefined) return { openRows: 0, waitingMessages: 0 }
  const [row] = handle.rows(leftSql, [scope, Number(marked.marked_at_ms)])
  const found = { openRows: Number(row?.rows), waitingMessages: Number(row?.messages) }
  if (found.openRows === 0 && found.waitingMessages === 0)
    handle.run('UPDATE latchkey_erasures SET scope = NULL, ended_at_ms = ?2 WHERE scope = ?1', [
      scope,
      readNowMs(handle),
    ])
  return found
}

/** For every `reap`: one batch of each erasure that is not at its end. */
export function eraseMarked(handle: Handle, limit: number): number {
  const marked = handle.rows(
    'SELECT scope FROM latchkey_erasures WHERE scope IS NOT NULL ORDER BY marked_at_ms LIMIT 10',
  )
  let erased = 0
  for (const { scope } of marked) {
    const batch = erase(handle, { scope: String(scope), limit })
    erased += batch.rows
    if (isEmpty(batch)) left(handle, String(scope))
  }
  return erased
}

/** What people do with rows: list, inspect, forget and unpark them. */
import type { Act, ForgetResult, Inspection, Listing, Page, UnparkResult, WrongState } from '../../../ports/store.ts'
import { forgetDetail, unparkDetail } from '../../shared/audit-detail.ts'
import { rowStateOf, stateCodes } from '../../shared/codes.ts'
import { pageOf, pageSize } from '../../shared/listing.ts'
import type { SqliteParameter } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { deleteJournal } from '../steps/journal.ts'
import { foreignRecoverySql, keyColumns, readNowMs, readRecord, recordFrom, storable } from './row.ts'
import { addAudit, auditOf, evidenceOf } from '../reconcile/evidence-and-audit.ts'
import { askAgain } from '../reconcile/look-ups.ts'
import { nowMsSql } from '../migrations/index.ts'

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable, unknown } = stateCodes

const unusualSql = `k.state <> ${inProgress} AND k.state <> ${completed}`

/** Of the identities after ?1 the first ?2; ?3 is the operation, ?4 the scope. Ordered by id, so that a page continues where the last one ended. */
export function listSql({ state, parked, operation, scope }: Listing): string {
  const conditions = ['k.id > ?1']
  // Literals: a partial index is used only where the statement itself says what the index is about.
  if (state !== undefined) conditions.push(`k.state = ${stateCodes[state]}`)
  if (state !== undefined && state !== 'in_progress' && state !== 'completed') conditions.push(unusualSql)
  if (parked) conditions.push('k.parked_at_ms IS NOT NULL')
  if (operation !== undefined) conditions.push('k.operation = ?3')
  if (scope !== undefined) conditions.push('k.scope = ?4')
  return `
    SELECT ${nowMsSql} AS now_ms, ${keyColumns} FROM latchkey_keys AS k
    WHERE ${conditions.join(' AND ')} ORDER BY k.id LIMIT ?2`
}

export function list(handle: Handle, listing: Listing): Page {
  const { operation, scope, limit, after } = listing
  const size = pageSize(limit)
  const parameters: SqliteParameter[] = [after ?? '', size + 1]
  // By their numbers: the one before has to be bound where the one after is.
  if (operation !== undefined || scope !== undefined) parameters.push(storable(operation ?? ''))
  if (scope !== undefined) parameters.push(storable(scope))
  return pageOf(handle.rows(listSql(listing), parameters).map(recordFrom), size)
}

export function inspect(handle: Handle, id: string): Inspection {
  return { record: readRecord(handle, id), evidence: evidenceOf(handle, id), audit: auditOf(handle, id) }
}

// An unreadable row as well: this version does not know what it is for. While its lease runs it is left to the process that does.
const forgetSql = `
  DELETE FROM latchkey_keys WHERE id = ?1 AND (
    state = ${completed} OR state NOT IN (${Object.values(stateCodes).join(', ')})
    OR ${foreignRecoverySql} AND NOT (state = ${inProgress} AND locked_until_ms > ${nowMsSql}))
  RETURNING operation, fence, scope`

export function forget(handle: Handle, id: string, act: Act): ForgetResult {
  const [row] = handle.rows(forgetSql, [id])
  if (row === undefined) return refusal(handle, id)
  handle.rows('DELETE FROM latchkey_outcomes WHERE id = ?1', [id])
  deleteJournal(handle, id)
  const detail = forgetDetail({ operation: String(row.operation), fence: Number(row.fence) })
  addAudit(
    handle,
    { id, scope: String(row.scope) },
    { by: act.by, reason: act.reason, act: 'forget', atMs: readNowMs(handle), detail },
  )
  return { kind: 'forgotten' }
}

// It may have been parked for longer than its retention, and a row that is expired counts as absent: it is kept as long
// again as it was to be kept when it was granted.
const unparkSql = `
  UPDATE latchkey_keys
  SET parked_at_ms = NULL, crashes = 0, expires_at_ms = ?2 + (expires_at_ms - created_at_ms),
      due_at_ms = CASE WHEN state IN (${pending}, ${failedRetryable}) THEN ?2 END
  WHERE id = ?1 AND parked_at_ms IS NOT NULL
  RETURNING last_error_code, fence, state, scope`

export function unpark(handle: Handle, id: string, { by, reason }: Act): UnparkResult {
  const atMs = readNowMs(handle)
  const [row] = handle.rows(unparkSql, [id, atMs])
  if (row === undefined) {
    const found = handle.rows('SELECT id FROM latchkey_keys WHERE id = ?1', [id])
    return { kind: found.length === 1 ? 'not-parked' : 'not-found' }
  }
  if (row.state === unknown) askAgain(handle, id, atMs)
  const lastErrorCode = row.last_error_code === null ? undefined : String(row.last_error_code)
  const detail = unparkDetail({ lastErrorCode, fence: Number(row.fence) })
  addAudit(handle, { id, scope: String(row.scope) }, { by, reason, act: 'unpark', atMs, detail })
  return { kind: 'unparked' }
}

/** Why nothing was done. */
export function refusal(handle: Handle, id: string): { readonly kind: 'not-found' } | WrongState {
  const [row] = handle.rows('SELECT state FROM latchkey_keys WHERE id = ?1', [id])
  if (row === undefined) return { kind: 'not-found' }
  return { kind: 'wrong-state', state: rowStateOf(Number(row.state)) }
}

/** What sweepers and people do with rows. */
import type { Act, ForgetResult, Inspection, Listing, Page, Resumable } from '../../../ports/store.ts'
import type { Swept, WrongState } from '../../../ports/store.ts'
import { recoveryCodes, rowStateOf, stateCodes } from '../../shared/codes.ts'
import type { SqliteParameter } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { deleteJournal, stuckSql } from '../steps/journal.ts'
import { foreignRecoverySql, keyColumns, readNowMs, readRecord, recordFrom, storable } from './row.ts'
import { addAudit, auditOf, evidenceOf } from '../reconcile/evidence-and-audit.ts'
import { nowMsSql } from '../migrations/index.ts'

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable, unknown } = stateCodes
const { rerun, resume } = recoveryCodes

const listLimitMax = 1_000

const sweepSql = (which: string) => `
  UPDATE latchkey_keys
  SET state = CASE recovery WHEN ${rerun} THEN ${failedRetryable} ELSE ${unknown} END,
      due_at_ms = CASE recovery WHEN ${rerun} THEN ?1 ELSE NULL END,
      locked_until_ms = NULL, crashes = crashes + 1
  WHERE id IN (
    SELECT k.id FROM latchkey_keys AS k
    WHERE k.state = ${inProgress} AND k.locked_until_ms <= ?1 AND (k.recovery <> ${resume} OR ${stuckSql}) ${which}
    ORDER BY k.locked_until_ms LIMIT ?2)
  RETURNING id, operation, state`
const sweepAllSql = sweepSql('')
const sweepOneSql = sweepSql('AND k.id = ?3')

export function sweep(handle: Handle, { limit, id }: { limit: number; id?: string }): readonly Swept[] {
  const nowMs = readNowMs(handle)
  const swept =
    id === undefined ? handle.rows(sweepAllSql, [nowMs, limit]) : handle.rows(sweepOneSql, [nowMs, limit, id])
  return swept.map(row => ({
    id: String(row.id),
    operation: String(row.operation),
    to: row.state === unknown ? 'unknown' : 'failed_retryable',
  }))
}

/**
 * An expired row counts as absent: going on with it would be another life, without its input. A row without an input was given
 * back by a worker that found it so.
 */
export const resumableSql: string = `
  SELECT id, scope, operation, fingerprint, crashes FROM (
    SELECT k.id, k.scope, k.operation, k.fingerprint, k.crashes, k.locked_until_ms AS since_ms FROM latchkey_keys AS k
    WHERE k.state = ${inProgress} AND k.locked_until_ms <= ?1 AND k.recovery = ${resume} AND NOT ${stuckSql}
    UNION ALL
    SELECT k.id, k.scope, k.operation, k.fingerprint, k.crashes, k.due_at_ms FROM latchkey_keys AS k
    WHERE k.recovery = ${resume} AND k.state IN (${pending}, ${failedRetryable}) AND k.parked_at_ms IS NULL
      AND k.due_at_ms <= ?1 AND (k.state = ${pending} OR k.expires_at_ms > ?1)
      AND EXISTS (SELECT 1 FROM latchkey_inputs AS i WHERE i.id = k.id))
  ORDER BY since_ms LIMIT ?2`

export function resumable(handle: Handle, { limit }: { limit: number }): readonly Resumable[] {
  return handle.rows(resumableSql, [readNowMs(handle), limit]).map(row => ({
    identity: { id: String(row.id), scope: String(row.scope), operation: String(row.operation) },
    // The column is a BLOB of a STRICT table.
    fingerprint: row.fingerprint as Uint8Array,
    crashes: Number(row.crashes),
  }))
}

const unusualSql = `k.state <> ${inProgress} AND k.state <> ${completed}`

/** Of the identities after ?1 the first ?2; ?3 is the operation. Ordered by id, so that a page continues where the last one ended. */
export function listSql({ state, parked, operation }: Listing): string {
  const conditions = ['k.id > ?1']
  // Literals: a partial index is used only where the statement itself says what the index is about.
  if (state !== undefined) conditions.push(`k.state = ${stateCodes[state]}`)
  if (state !== undefined && state !== 'in_progress' && state !== 'completed') conditions.push(unusualSql)
  if (parked) conditions.push('k.parked_at_ms IS NOT NULL')
  if (operation !== undefined) conditions.push('k.operation = ?3')
  return `
    SELECT ${nowMsSql} AS now_ms, ${keyColumns} FROM latchkey_keys AS k
    WHERE ${conditions.join(' AND ')} ORDER BY k.id LIMIT ?2`
}

export function list(handle: Handle, listing: Listing): Page {
  const { operation, limit, after } = listing
  const size = Math.max(1, Math.min(limit, listLimitMax))
  const parameters: SqliteParameter[] = [after ?? '', size + 1]
  if (operation !== undefined) parameters.push(storable(operation))
  const found = handle.rows(listSql(listing), parameters)
  const records = found.slice(0, size).map(recordFrom)
  return { records, next: found.length > size ? records.at(-1)?.id : undefined }
}

export function inspect(handle: Handle, id: string): Inspection {
  return { record: readRecord(handle, id), evidence: evidenceOf(handle, id), audit: auditOf(handle, id) }
}

// Or nobody here knows what the row is for. With a lease that still runs it is left to the process that does.
const forgetSql = `
  DELETE FROM latchkey_keys WHERE id = ?1 AND (
    state = ${completed} OR state NOT IN (${Object.values(stateCodes).join(', ')})
    OR ${foreignRecoverySql} AND NOT (state = ${inProgress} AND locked_until_ms > ${nowMsSql}))
  RETURNING fence`

export function forget(handle: Handle, id: string, act: Act): ForgetResult {
  const [row] = handle.rows(forgetSql, [id])
  if (row === undefined) return refusal(handle, id)
  handle.rows('DELETE FROM latchkey_outcomes WHERE id = ?1', [id])
  deleteJournal(handle, id)
  const detail = `fence ${Number(row.fence)}`
  addAudit(handle, id, { by: act.by, reason: act.reason, act: 'forget', atMs: readNowMs(handle), detail })
  return { kind: 'forgotten' }
}

/** Why nothing was done. */
export function refusal(handle: Handle, id: string): { readonly kind: 'not-found' } | WrongState {
  const [row] = handle.rows('SELECT state FROM latchkey_keys WHERE id = ?1', [id])
  if (row === undefined) return { kind: 'not-found' }
  return { kind: 'wrong-state', state: rowStateOf(Number(row.state)) }
}

/** What becomes of rows after their time: nothing, or a tombstone first. */
import { stateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import { deleteJournal } from '../steps/journal.ts'
import { readNowMs } from './row.ts'

const { completed, failed_retryable: failedRetryable } = stateCodes

/** `stays`: its tombstone begins now, and lasts. */
export const expiredSql: string = `
  SELECT k.id, k.state = ${completed} AND k.gone_at_ms IS NULL AND k.expires_at_ms + k.tombstone_ms > ?1 AS stays
  FROM latchkey_keys AS k
  WHERE k.expires_at_ms <= ?1 AND k.state IN (${completed}, ${failedRetryable}) AND k.parked_at_ms IS NULL
  ORDER BY k.expires_at_ms LIMIT ?2`

const stripSql = `
  UPDATE latchkey_keys SET gone_at_ms = ?2, expires_at_ms = expires_at_ms + tombstone_ms, outcome = NULL
  WHERE id = ?1`
const deleteSql = 'DELETE FROM latchkey_keys WHERE id = ?1'

/** The row's evidence ends with its outcome, because it may hold a whole answer; its audit is kept for good. */
export function reap(handle: Handle, { limit }: { limit: number }): number {
  const nowMs = readNowMs(handle)
  const expired = handle.rows(expiredSql, [nowMs, limit])
  for (const { id, stays } of expired) {
    if (stays === 1) handle.rows(stripSql, [String(id), nowMs])
    else handle.rows(deleteSql, [String(id)])
    handle.rows('DELETE FROM latchkey_outcomes WHERE id = ?1', [String(id)])
    handle.rows('DELETE FROM latchkey_evidence WHERE id = ?1', [String(id)])
    deleteJournal(handle, String(id))
  }
  return expired.length
}

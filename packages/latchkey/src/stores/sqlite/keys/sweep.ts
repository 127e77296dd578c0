/** Rows whose owner is silent, by their recovery. */
import type { Swept } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { addLine } from '../audit/lines.ts'
import type { Handle } from '../connection/handle.ts'
import { stuckSql } from '../steps/journal.ts'
import { readNowMs } from './row.ts'

const { in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes
const { rerun, resume } = recoveryCodes

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
  for (const row of swept) addLine(handle, String(row.id))
  return swept.map(row => ({
    id: String(row.id),
    operation: String(row.operation),
    to: row.state === unknown ? 'unknown' : 'failed_retryable',
  }))
}

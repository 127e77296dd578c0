/** Phased rows that a worker may claim. */
import type { Resumable } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import { stuckSql } from '../steps/journal.ts'
import { readNowMs } from './row.ts'

const { pending, in_progress: inProgress, failed_retryable: failedRetryable } = stateCodes
const { resume } = recoveryCodes

/**
 * An expired row counts as absent: continuing it would be another generation, without its input. A row without an input was given
 * back by a worker that found it so.
 */
export const resumableSql: string = `
  SELECT id, scope, operation, fingerprint, crashes,
    EXISTS (SELECT 1 FROM latchkey_inputs AS i WHERE i.id = found.id AND i.deadline_at_ms <= ?1)
      AND NOT EXISTS (SELECT 1 FROM latchkey_steps AS s WHERE s.id = found.id) AS overdue
  FROM (
    SELECT k.id, k.scope, k.operation, k.fingerprint, k.crashes, k.locked_until_ms AS since_ms FROM latchkey_keys AS k
    WHERE k.state = ${inProgress} AND k.locked_until_ms <= ?1 AND k.recovery = ${resume} AND NOT ${stuckSql}
    UNION ALL
    SELECT k.id, k.scope, k.operation, k.fingerprint, k.crashes, k.due_at_ms FROM latchkey_keys AS k
    WHERE k.recovery = ${resume} AND k.state IN (${pending}, ${failedRetryable}) AND k.parked_at_ms IS NULL
      AND k.due_at_ms <= ?1 AND (k.state = ${pending} OR k.expires_at_ms > ?1)
      AND EXISTS (SELECT 1 FROM latchkey_inputs AS i WHERE i.id = k.id)) AS found
  ORDER BY since_ms LIMIT ?2`

export function resumable(handle: Handle, { limit }: { limit: number }): readonly Resumable[] {
  return handle.rows(resumableSql, [readNowMs(handle), limit]).map(row => ({
    identity: { id: String(row.id), scope: String(row.scope), operation: String(row.operation) },
    // The column is a BLOB of a STRICT table.
    fingerprint: row.fingerprint as Uint8Array,
    crashes: Number(row.crashes),
    overdue: Number(row.overdue) === 1,
  }))
}

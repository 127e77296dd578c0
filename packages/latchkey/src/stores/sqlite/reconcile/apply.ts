/** Evidence that is kept, applied: one compare-and-set, with the evidence marked in the same transaction. */
import type { ApplyOptions, ApplyResult, EffectRef, FoundVerdict, LookupClaim } from '../../../ports/reconciliation.ts'
import { recoveryCodes, rowStateOf, stateCodes, stepStateCodes } from '../../shared/codes.ts'
import { type OutcomeRow, outcomeOf } from '../../shared/record-row.ts'
import type { SqliteRow } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { foreignRecoverySql, readNowMs } from '../keys/row.ts'
import { settleUnknown, type SettledTo } from './settle.ts'

const { unknown } = stateCodes
const { open } = stepStateCodes

/**
 * The evidence `e` is of this generation of the row `k`, about what is in doubt there, and of the kind that it needs: the value of
 * the open effect, or an outcome where none is open.
 */
const fitsSql = `
  (e.at_ms >= k.created_at_ms AND CASE
    WHEN k.${foreignRecoverySql} THEN 0
    WHEN k.recovery = ${recoveryCodes.resume} AND EXISTS (
      SELECT 1 FROM latchkey_steps AS s WHERE s.id = k.id AND s.state = ${open})
    THEN (e.verdict = 'never-happened' OR e.status IS NULL) AND EXISTS (
      SELECT 1 FROM latchkey_steps AS s WHERE s.id = k.id AND s.state = ${open}
        AND s.position = e.effect_position AND s.epoch = e.effect_epoch)
    ELSE (e.verdict = 'never-happened' OR e.status IS NOT NULL) AND e.effect_position IS NULL
  END)`

const evidenceSql = `
  SELECT e.id, e.verdict, e.applied, e.at_ms, e.effect_position, e.effect_name, e.effect_epoch, e.result,
    e.status AS outcome_status, e.version AS outcome_version, e.headers AS outcome_headers, e.body AS outcome_body,
    k.state, k.fence, k.recovery, k.state = ${unknown} AND ${fitsSql} AS fits, l.look, l.since_ms
  FROM latchkey_evidence AS e
    LEFT JOIN latchkey_keys AS k ON k.id = e.id LEFT JOIN latchkey_lookups AS l ON l.id = e.id
  WHERE e.seq = ?1 AND e.ref IS NOT NULL`

export function apply(handle: Handle, evidenceId: string, options: ApplyOptions): ApplyResult {
  const [row] = handle.rows(evidenceSql, [Number(evidenceId)])
  if (row === undefined) return { kind: 'not-applicable', state: undefined }
  if (row.applied === 1) return { kind: 'applied-before' }
  if (options.lookup !== undefined && !isLooking(row, options.lookup)) return { kind: 'claim-lost' }
  const state = row.state === null ? undefined : rowStateOf(Number(row.state))
  if (row.fits !== 1) return { kind: 'not-applicable', state }
  const nowMs = readNowMs(handle)
  const quarantineEndMs = Number(row.since_ms) + options.quarantineMs
  // By when it was found: what was not there within the quarantine may have come since.
  if (row.verdict === 'never-happened' && Number(row.at_ms) < quarantineEndMs) {
    return { kind: 'too-early', leftMs: Math.max(0, Math.ceil(quarantineEndMs - nowMs)) }
  }
  return { kind: 'settled', to: settleBy(handle, row, { seq: Number(evidenceId), nowMs, options }) }
}

function isLooking(row: SqliteRow, { id, fence, look }: LookupClaim): boolean {
  return row.id === id && row.state === unknown && Number(row.fence) === fence && Number(row.look) === look
}

function settleBy(
  handle: Handle,
  row: SqliteRow,
  { seq, nowMs, options }: { seq: number; nowMs: number; options: ApplyOptions },
): SettledTo {
  const phased = row.recovery === recoveryCodes.resume
  const settled = { id: String(row.id), fence: Number(row.fence), phased, effect: effectOf(row) }
  handle.rows('UPDATE latchkey_evidence SET applied = 1 WHERE seq = ?1', [seq])
  return settleUnknown(handle, settled, { verdict: verdictOf(row), retentionMs: options.retentionMs, atMs: nowMs })
}

function effectOf(row: SqliteRow): EffectRef | undefined {
  if (row.effect_position === null) return undefined
  return { position: Number(row.effect_position), name: String(row.effect_name), epoch: Number(row.effect_epoch) }
}

function verdictOf(row: SqliteRow): FoundVerdict {
  const kind = row.verdict === 'declined' ? 'declined' : 'happened'
  if (row.verdict === 'never-happened') return { kind: 'never-happened' }
  // The table is STRICT and the columns are named as OutcomeRow has them.
  const outcome = outcomeOf(row as unknown as OutcomeRow & { fence: number })
  if (outcome !== undefined) return { kind, outcome }
  return { kind, value: row.result === null ? undefined : String(row.result) }
}

// CROSS: begins with the few rows that are unknown, and never with all evidence there is.
export const waitingSql: string = `
  SELECT e.seq, k.operation
  FROM latchkey_lookups AS l CROSS JOIN latchkey_keys AS k ON k.id = l.id CROSS JOIN latchkey_evidence AS e ON e.id = l.id
  WHERE e.applied = 0 AND e.ref IS NOT NULL AND e.verdict IN ('happened', 'declined') AND ${fitsSql}
  ORDER BY e.seq LIMIT ?1`

export function waiting(
  handle: Handle,
  { limit }: { limit: number },
): readonly { evidenceId: string; operation: string }[] {
  const found = handle.rows(waitingSql, [limit])
  return found.map(row => ({ evidenceId: String(row.seq), operation: String(row.operation) }))
}

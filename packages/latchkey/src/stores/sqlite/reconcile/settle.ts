/** An unknown row ends: by evidence that is kept, or by a person's word. The trigger on the state ends its look-ups. */
import type { EffectRef, FoundVerdict } from '../../../ports/reconciliation.ts'
import type { Act, SettleResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { refusal } from '../keys/operator.ts'
import { addLine } from '../audit/lines.ts'
import type { Handle } from '../connection/handle.ts'
import { allowAgain, finishEffect, openEffect, raiseEpoch } from '../steps/journal.ts'
import { foreignRecoverySql, readNowMs } from '../keys/row.ts'
import { addAudit, addEvidence, type NewEvidence } from './evidence-and-audit.ts'
import { putOutcome } from '../keys/outcome.ts'

const { unknown } = stateCodes

export interface Unknown {
  readonly id: string
  readonly fence: number
  readonly phased: boolean
  /** Of phased work: the open effect that the verdict is about. */
  readonly effect: EffectRef | undefined
}

export interface Settlement {
  readonly verdict: FoundVerdict
  readonly retentionMs: number
  readonly atMs: number
}

export type SettledTo = 'completed' | 'failed_retryable' | 'pending'

const settleSql = `
  UPDATE latchkey_keys
  SET state = ?2, completed_at_ms = ?3, due_at_ms = ?4, expires_at_ms = MAX(expires_at_ms, ?5), parked_at_ms = NULL
  WHERE id = ?1 AND state = ${unknown}`

/** The caller has seen, in the same transaction, that the row is unknown and that the verdict is of the kind it needs. */
export function settleUnknown(
  handle: Handle,
  { id, fence, phased, effect }: Unknown,
  { verdict, retentionMs, atMs }: Settlement,
): SettledTo {
  const to = placeAfter(verdict, phased)
  const [completedAtMs, dueAtMs] = to === 'completed' ? [atMs, null] : [null, atMs]
  handle.rows(settleSql, [id, stateCodes[to], completedAtMs, dueAtMs, Math.ceil(atMs + retentionMs)])
  if ('outcome' in verdict) putOutcome(handle, { id, fence }, { outcome: verdict.outcome, byOwner: false })
  addLine(handle, id, 'outcome' in verdict ? verdict.outcome.status : undefined)
  if (effect !== undefined && 'value' in verdict) {
    finishEffect(handle, id, { position: effect.position, value: verdict.value })
  }
  if (effect !== undefined && verdict.kind === 'never-happened') raiseEpoch(handle, id, effect.position)
  return to
}

function placeAfter(verdict: FoundVerdict, phased: boolean): SettledTo {
  if ('outcome' in verdict) return 'completed'
  return phased ? 'pending' : 'failed_retryable'
}

const unknownSql = `SELECT fence, scope, recovery, ${foreignRecoverySql} AS is_foreign FROM latchkey_keys WHERE id = ?1 AND state = ${unknown}`

export function settle(
  handle: Handle,
  id: string,
  { verdict, act, retentionMs }: { verdict: FoundVerdict; act: Act; retentionMs: number },
): SettleResult {
  const [row] = handle.rows(unknownSql, [id])
  if (row === undefined) return refusal(handle, id)
  if (row.is_foreign === 1) return { kind: 'wrong-state', state: 'unreadable' }
  const phased = row.recovery === recoveryCodes.resume
  const effect = phased ? openEffect(handle, id) : undefined
  const needs = effect === undefined ? 'outcome' : 'value'
  if (verdict.kind !== 'never-happened' && !(needs in verdict)) {
    return { kind: 'wrong-verdict', needs, effect: effect?.name }
  }
  const atMs = readNowMs(handle)
  settleUnknown(handle, { id, fence: Number(row.fence), phased, effect }, { verdict, retentionMs, atMs })
  // A person speaks about the whole row, whatever else of it is open.
  if (verdict.kind === 'never-happened') allowAgain(handle, id, 'next-epoch')
  addEvidence(handle, id, {
    source: 'operator',
    verdict: verdict.kind,
    applied: true,
    atMs,
    effect,
    ...contentOf(verdict),
  })
  const audited = { by: act.by, reason: act.reason, act: 'settle', atMs, detail: verdict.kind } as const
  addAudit(handle, { id, scope: String(row.scope) }, audited)
  return { kind: 'settled' }
}

/** What a verdict holds beside its kind. */
export function contentOf(verdict: FoundVerdict): Pick<NewEvidence, 'outcome' | 'result'> {
  if ('outcome' in verdict) return { outcome: verdict.outcome }
  return 'value' in verdict ? { result: verdict.value } : {}
}

/** Evidence and audit. Written only inside the transaction of the act they describe. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { EffectRef } from '../../../ports/reconciliation.ts'
import type { AuditEntry, Claim, Evidence, Identity } from '../../../ports/store.ts'
import { headersToText } from '../../shared/outcome-codec.ts'
import type { Handle } from '../connection/handle.ts'
import { storable } from '../keys/row.ts'

export interface NewEvidence extends Omit<Evidence, 'effect'> {
  /** The late owner's grant. */
  readonly claim?: Claim
  /** The source's own name for it. Evidence without one is shown to people only and never applied again. */
  readonly ref?: string
  readonly effect?: EffectRef | undefined
  readonly outcome?: Outcome | undefined
  readonly result?: string | undefined
}

const addEvidenceSql = `
  INSERT INTO latchkey_evidence (id, source, verdict, applied, at_ms, fence, claim_id, ref,
    effect_position, effect_name, effect_epoch, result, status, version, headers, body)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
  ON CONFLICT DO NOTHING RETURNING seq`

/** Its number; `undefined`: it was there before. */
export function addEvidence(handle: Handle, id: string, entry: NewEvidence): number | undefined {
  const { source, verdict, applied, atMs, claim, ref, effect, outcome, result } = entry
  const headers = outcome ? headersToText(outcome.headers) : null
  const [added] = handle.rows(addEvidenceSql, [
    ...[id, source, verdict, applied, atMs, claim?.fence ?? null, claim?.claimId ?? null, ref ?? null],
    ...[effect?.position ?? null, effect ? storable(effect.name) : null, effect?.epoch ?? null, result ?? null],
    ...[outcome?.status ?? null, outcome?.version ?? null, headers, outcome?.body ?? null],
  ])
  return added && Number(added.seq)
}

const hasSettledSql = `
  SELECT seq FROM latchkey_evidence WHERE id = ?1 AND claim_id = ?2 AND verdict = ?3 AND applied = 1`

/** The same evidence of this late owner has moved the row before. */
export function hasSettled(handle: Handle, claim: Claim, verdict: Evidence['verdict']): boolean {
  return handle.rows(hasSettledSql, [claim.id, claim.claimId, verdict]).length === 1
}

const evidenceSql = `
  SELECT source, verdict, effect_name, at_ms, applied FROM latchkey_evidence WHERE id = ?1 ORDER BY seq`

export function evidenceOf(handle: Handle, id: string): readonly Evidence[] {
  return handle.rows(evidenceSql, [id]).map(row => ({
    // Only addEvidence writes these two columns.
    source: row.source as Evidence['source'],
    verdict: row.verdict as Evidence['verdict'],
    effect: row.effect_name === null ? undefined : String(row.effect_name),
    atMs: Number(row.at_ms),
    applied: row.applied === 1,
  }))
}

const addAuditSql = `
  INSERT INTO latchkey_audit (id, act, by, reason, detail, at_ms, scope) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`

/** `scope`: as it stands in the row. */
export function addAudit(handle: Handle, { id, scope }: Pick<Identity, 'id' | 'scope'>, entry: AuditEntry): void {
  const { act, by, reason, detail, atMs } = entry
  handle.rows(addAuditSql, [id, act, storable(by), storable(reason), detail, atMs, scope])
}

const auditSql = 'SELECT act, by, reason, detail, at_ms FROM latchkey_audit WHERE id = ?1 ORDER BY seq'

export function auditOf(handle: Handle, id: string): readonly AuditEntry[] {
  return handle.rows(auditSql, [id]).map(row => ({
    // Only addAudit writes this column.
    act: row.act as AuditEntry['act'],
    by: String(row.by),
    reason: String(row.reason),
    detail: String(row.detail),
    atMs: Number(row.at_ms),
  }))
}

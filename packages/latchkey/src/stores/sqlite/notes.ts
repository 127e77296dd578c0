/** Evidence and audit. Written only inside the transaction of the act they tell about. */
import type { Outcome } from '../../ports/outcome.ts'
import type { AuditEntry, Claim, Evidence } from '../../ports/store.ts'
import { headersToText } from '../../sql/outcome-codec.ts'
import type { Handle } from './handle.ts'
import { storable } from './key-row.ts'

export interface NewEvidence extends Evidence {
  /** The late owner's grant. */
  readonly claim?: Claim
  readonly outcome?: Outcome
}

const addEvidenceSql = `
  INSERT INTO latchkey_evidence
    (id, source, verdict, applied, at_ms, fence, claim_id, status, version, headers, body)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
  ON CONFLICT DO NOTHING`

export function addEvidence(handle: Handle, id: string, entry: NewEvidence): void {
  const { source, verdict, applied, atMs, claim, outcome } = entry
  const headers = outcome ? headersToText(outcome.headers) : null
  handle.rows(addEvidenceSql, [
    ...[id, source, verdict, applied, atMs, claim?.fence ?? null, claim?.claimId ?? null],
    ...[outcome?.status ?? null, outcome?.version ?? null, headers, outcome?.body ?? null],
  ])
}

const evidenceSql = 'SELECT source, verdict, at_ms, applied FROM latchkey_evidence WHERE id = ?1 ORDER BY seq'

export function evidenceOf(handle: Handle, id: string): readonly Evidence[] {
  return handle.rows(evidenceSql, [id]).map(row => ({
    // Only addEvidence writes these two columns.
    source: row.source as Evidence['source'],
    verdict: row.verdict as Evidence['verdict'],
    atMs: Number(row.at_ms),
    applied: row.applied === 1,
  }))
}

const addAuditSql = `
  INSERT INTO latchkey_audit (id, act, by, reason, detail, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`

export function addAudit(handle: Handle, id: string, entry: AuditEntry): void {
  const { act, by, reason, detail, atMs } = entry
  handle.rows(addAuditSql, [id, act, storable(by), storable(reason), detail, atMs])
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

/** Evidence and audit by identity. They outlive the row, so they are kept beside it. */
import type { AuditEntry, Evidence } from '../../ports/store.ts'

export interface Notes {
  addEvidence(id: string, entry: Evidence): void
  addAudit(id: string, entry: AuditEntry): void
  evidenceOf(id: string): readonly Evidence[]
  auditOf(id: string): readonly AuditEntry[]
  /** The reaper ends a row's evidence with the row; its audit is kept for good. */
  dropEvidence(id: string): void
}

export function createNotes(): Notes {
  const evidence = new Map<string, readonly Evidence[]>()
  const audit = new Map<string, readonly AuditEntry[]>()
  return {
    addEvidence: (id, entry) => void evidence.set(id, [...(evidence.get(id) ?? []), entry]),
    addAudit: (id, entry) => void audit.set(id, [...(audit.get(id) ?? []), entry]),
    evidenceOf: id => evidence.get(id) ?? [],
    auditOf: id => audit.get(id) ?? [],
    dropEvidence: id => void evidence.delete(id),
  }
}

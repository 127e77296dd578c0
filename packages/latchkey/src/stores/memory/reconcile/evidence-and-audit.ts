/** Evidence and audit by identity. They outlive the row, so they are kept beside it. */
import type { EvidenceSource, FoundVerdict } from '../../../ports/reconciliation.ts'
import type { AuditEntry, Evidence } from '../../../ports/store.ts'

/** Evidence that was kept under a name, and may still be applied. */
export interface NamedEvidence extends Evidence {
  readonly evidenceId: string
  readonly id: string
  readonly ref: string
  readonly found: FoundVerdict
}

export interface Notes {
  addEvidence(id: string, entry: Evidence): void
  /** Its number. */
  addNamed(entry: Omit<NamedEvidence, 'evidenceId'>): string
  addAudit(id: string, entry: AuditEntry): void
  evidenceOf(id: string): readonly Evidence[]
  auditOf(id: string): readonly AuditEntry[]
  find(evidenceId: string): NamedEvidence | undefined
  findNamed(id: string, source: EvidenceSource, ref: string): NamedEvidence | undefined
  namedOf(id: string): readonly NamedEvidence[]
  markApplied(entry: NamedEvidence): void
  /** What was said of an earlier life of the key keeps its place and loses its name. */
  unname(entry: NamedEvidence): void
  /** The reaper ends a row's evidence with the row; its audit is kept for good. */
  dropEvidence(id: string): void
}

export function createNotes(): Notes {
  const evidence = new Map<string, readonly (Evidence | NamedEvidence)[]>()
  const named = new Map<string, NamedEvidence>()
  const audit = new Map<string, readonly AuditEntry[]>()
  let numbers = 0
  const add = (id: string, entry: Evidence) => void evidence.set(id, [...(evidence.get(id) ?? []), entry])
  const replace = (before: NamedEvidence, after: Evidence) => {
    const all = evidence.get(before.id) ?? []
    evidence.set(
      before.id,
      all.map(each => (each === before ? after : each)),
    )
  }
  const namedOf = (id: string) => (evidence.get(id) ?? []).filter(each => 'evidenceId' in each)
  return {
    addEvidence: add,
    addNamed(entry) {
      numbers += 1
      const kept = { ...entry, evidenceId: String(numbers) }
      named.set(kept.evidenceId, kept)
      add(kept.id, kept)
      return kept.evidenceId
    },
    addAudit: (id, entry) => void audit.set(id, [...(audit.get(id) ?? []), entry]),
    evidenceOf: id => (evidence.get(id) ?? []).map(told),
    auditOf: id => audit.get(id) ?? [],
    find: evidenceId => named.get(evidenceId),
    findNamed: (id, source, ref) => namedOf(id).find(each => each.source === source && each.ref === ref),
    namedOf,
    markApplied(entry) {
      const applied = { ...entry, applied: true }
      named.set(entry.evidenceId, applied)
      replace(entry, applied)
    },
    unname(entry) {
      named.delete(entry.evidenceId)
      replace(entry, told(entry))
    },
    dropEvidence(id) {
      for (const { evidenceId } of namedOf(id)) named.delete(evidenceId)
      evidence.delete(id)
    },
  }
}

/** Without what only the store needs. */
function told({ source, verdict, effect, atMs, applied }: Evidence): Evidence {
  return { source, verdict, effect, atMs, applied }
}

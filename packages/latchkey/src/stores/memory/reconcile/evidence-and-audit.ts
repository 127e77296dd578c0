/** Evidence and audit by identity. They outlive the row, so they are kept beside it. */
import type { EffectRef, EvidenceSource, FoundVerdict } from '../../../ports/reconciliation.ts'
import type { AuditEntry, Evidence } from '../../../ports/store.ts'
import { erasedText } from '../../shared/audit-detail.ts'

/** Evidence that was kept under a name, and may still be applied. */
export interface NamedEvidence extends Evidence {
  readonly evidenceId: string
  readonly id: string
  readonly ref: string
  readonly effectRef: EffectRef | undefined
  readonly found: FoundVerdict
}

export interface LateOwner extends Pick<Evidence, 'verdict' | 'applied' | 'atMs'> {
  readonly id: string
  readonly claimId: string
}

export interface Audited {
  readonly auditId: string
  /** Undefined: it is not about a row. */
  readonly id: string | undefined
  readonly scope: string | undefined
  readonly entry: AuditEntry
}

type Entry = Evidence | NamedEvidence | (Evidence & { readonly claimId: string })

export interface EvidenceLog {
  addEvidence(id: string, entry: Evidence): void
  /** A late owner that repeats itself after a lost reply is one piece of evidence. */
  addLateOwner(entry: LateOwner): void
  /** Gives its number. */
  addNamed(entry: Omit<NamedEvidence, 'evidenceId'>): string
  /** In the order in which they were added. */
  readonly audited: readonly Audited[]
  /** Gives its number. */
  addAudit(about: Pick<Audited, 'id' | 'scope'>, entry: AuditEntry): string
  /** The identities of a scope that were ever acted on. */
  auditedIn(scope: string): readonly string[]
  /** Returns how many texts there were. */
  blankAudit(scope: string): number
  evidenceOf(id: string): readonly Evidence[]
  auditOf(id: string): readonly AuditEntry[]
  find(evidenceId: string): NamedEvidence | undefined
  findNamed(id: string, source: EvidenceSource, ref: string): NamedEvidence | undefined
  namedOf(id: string): readonly NamedEvidence[]
  allNamed(): readonly NamedEvidence[]
  /** The same evidence in other bytes. False: it is not there any more. */
  replaceFound(entry: NamedEvidence, found: FoundVerdict): boolean
  /** The same under another name. False: it is not there any more, or another piece has that name. */
  rename(entry: NamedEvidence, ref: string): boolean
  markApplied(entry: NamedEvidence): void
  /** Evidence about an earlier generation of the row keeps its place and loses its name. */
  unname(entry: NamedEvidence): void
  /** The reaper ends a row's evidence with the row; its audit is kept for good. */
  dropEvidence(id: string): void
}

export function evidenceLog(): EvidenceLog {
  const evidence = new Map<string, readonly Entry[]>()
  const named = new Map<string, NamedEvidence>()
  let numbers = 0
  const entriesOf = (id: string) => evidence.get(id) ?? []
  const add = (id: string, entry: Entry) => void evidence.set(id, [...entriesOf(id), entry])
  const replace = (before: NamedEvidence, after: Evidence) =>
    void evidence.set(
      before.id,
      entriesOf(before.id).map(each => (each === before ? after : each)),
    )
  const putAgain = (entry: NamedEvidence, next: NamedEvidence): boolean => {
    if (named.get(entry.evidenceId) !== entry) return false
    named.set(entry.evidenceId, next)
    replace(entry, next)
    return true
  }
  const namedOf = (id: string) => entriesOf(id).filter(each => 'evidenceId' in each)
  return {
    ...auditLog(),
    addEvidence: add,
    addLateOwner({ id, claimId, verdict, applied, atMs }) {
      const isKnown = entriesOf(id).some(
        each => 'claimId' in each && each.claimId === claimId && each.verdict === verdict,
      )
      if (!isKnown) add(id, { source: 'late-owner', verdict, effect: undefined, applied, atMs, claimId })
    },
    addNamed(entry) {
      numbers += 1
      const kept = { ...entry, evidenceId: String(numbers) }
      named.set(kept.evidenceId, kept)
      add(kept.id, kept)
      return kept.evidenceId
    },
    evidenceOf: id => entriesOf(id).map(plainEvidence),
    find: evidenceId => named.get(evidenceId),
    findNamed: (id, source, ref) => namedOf(id).find(each => each.source === source && each.ref === ref),
    namedOf,
    allNamed: () => [...named.values()],
    replaceFound: (entry, found) => putAgain(entry, { ...entry, found }),
    rename(entry, ref) {
      const isTaken = namedOf(entry.id).some(each => each.source === entry.source && each.ref === ref)
      return !isTaken && putAgain(entry, { ...entry, ref })
    },
    markApplied(entry) {
      const applied = { ...entry, applied: true }
      named.set(entry.evidenceId, applied)
      replace(entry, applied)
    },
    unname(entry) {
      named.delete(entry.evidenceId)
      replace(entry, plainEvidence(entry))
    },
    dropEvidence(id) {
      for (const { evidenceId } of namedOf(id)) named.delete(evidenceId)
      evidence.delete(id)
    },
  }
}

type AuditLog = Pick<EvidenceLog, 'addAudit' | 'auditedIn' | 'blankAudit' | 'auditOf' | 'audited'>

function auditLog(): AuditLog {
  const audited: Audited[] = []
  // Which of them are about a row: a row is inspected far more often than it is acted on.
  const ofRow = new Map<string, readonly number[]>()
  return {
    audited,
    auditOf: id => (ofRow.get(id) ?? []).flatMap(at => audited[at]?.entry ?? []),
    addAudit({ id, scope }, entry) {
      if (id !== undefined) ofRow.set(id, [...(ofRow.get(id) ?? []), audited.length])
      audited.push({ auditId: String(audited.length + 1), id, scope, entry })
      return String(audited.length)
    },
    auditedIn: scope => audited.flatMap(each => (each.scope === scope && each.id !== undefined ? [each.id] : [])),
    blankAudit(scope) {
      let blanked = 0
      for (const [at, each] of audited.entries()) {
        if (each.scope !== scope || isBlank(each.entry)) continue
        blanked += 1
        audited[at] = { ...each, entry: { ...each.entry, reason: erasedText, detail: '' } }
      }
      return blanked
    },
  }
}

function isBlank({ reason, detail }: AuditEntry): boolean {
  return reason === erasedText && detail === ''
}

/** Without what only the store needs. */
function plainEvidence({ source, verdict, effect, atMs, applied }: Evidence): Evidence {
  return { source, verdict, effect, atMs, applied }
}

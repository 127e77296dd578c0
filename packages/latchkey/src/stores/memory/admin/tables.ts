/** What operators wrote, and what the processes say of themselves. */
import type {
  OperatorEntry,
  Rate,
  StoredBulk,
  StoredBulkRow,
  StoredProposal,
  WorkerBeat,
} from '../../../ports/faculties/admin.ts'
import type { Tables } from '../tables.ts'

export interface Notes {
  readonly scope: string
  readonly owner: string | undefined
  readonly note: string | undefined
  readonly acts: number
  readonly lookUpAskedAtMs: number | undefined
}

export type EntryDetails = Pick<
  OperatorEntry,
  'source' | 'requestId' | 'evidence' | 'from' | 'to' | 'fence' | 'refused'
>

export interface HeldProposal extends Omit<StoredProposal, 'expiresInMs'> {
  readonly seq: number
  readonly expiresAtMs: number
}

export interface HeldBulk extends Omit<StoredBulk, 'validInMs' | 'finished' | 'total'> {
  readonly validUntilMs: number
  readonly rows: readonly StoredBulkRow[]
}

export interface AdminTables {
  /** By row. */
  readonly notes: Map<string, Notes>
  /** By the number of the entry. */
  readonly details: Map<string, EntryDetails>
  readonly proposals: Map<string, HeldProposal>
  readonly bulk: Map<string, HeldBulk>
  /** By process and loop. */
  readonly workers: Map<string, WorkerBeat & { readonly seenAtMs: number }>
  /** By minute, operation and metric. */
  readonly rates: Map<string, Rate & { readonly minuteMs: number }>
}

export function emptyAdmin(): AdminTables {
  return {
    notes: new Map(),
    details: new Map(),
    proposals: new Map(),
    bulk: new Map(),
    workers: new Map(),
    rates: new Map(),
  }
}

/** Before the audit is blanked, by which the details are found. */
export function eraseAdmin({ admin, log }: Tables, scope: string): void {
  for (const { auditId, scope: of } of log.audited) {
    const details = admin.details.get(auditId)
    if (of === scope && details !== undefined) admin.details.set(auditId, { ...details, evidence: undefined })
  }
  for (const [id, notes] of admin.notes) if (notes.scope === scope) admin.notes.set(id, { ...notes, note: undefined })
  for (const [id, proposal] of admin.proposals) if (proposal.scope === scope) admin.proposals.delete(id)
}

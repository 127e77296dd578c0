/**
 * A store without operators' tables still knows its rows: whether a payment happened can be asked of every store. There are no acts here, and what
 * only those tables hold is left out: since when a row is unknown, who has taken it, what was noted.
 */
import type { OperatorEntry, RowNotes, WorkKind } from '../ports/faculties/admin.ts'
import type { AuditEntry, KeyRecord, Listing, Store } from '../ports/store.ts'
import { scopeText } from '../engine/request.ts'
import type { WorkFilter } from './admin.ts'

/** Bound to no version: acts that would compare it are refused. */
export function coreNotes({ fence }: Pick<KeyRecord, 'fence'>): RowNotes {
  return { version: { fence, version: 0 }, owner: undefined, note: undefined, unknown: undefined }
}

const notListedBy = [
  ['cause', 'cause'],
  ['owner', 'owner'],
  ['olderThanMs', 'age'],
] as const

/** For the operator: what is missing, and what to do. */
export function withoutTables(name: string): string {
  return `the ${name} store has no operators’ tables (traits.faculties has no admin)`
}

export function noActs(name: string): string {
  return `${withoutTables(name)}, so its rows cannot be changed from here. Settle a row in your application, with latchkey.settle, or use postgresStore or sqliteStore`
}

/** What a list would need the operators' tables for. Undefined: the core has all of it. */
export function beyondCore({ name }: Store<unknown>, filter: WorkFilter): string | undefined {
  const why = withoutTables(name)
  if (filter.kind === 'overdue') return `${why}: overdue rows are not listed; its sweeper finds them`
  const asked = notListedBy.find(([name]) => filter[name] !== undefined)
  return asked && `${why}: unknown and parked rows are listed by operation and scope, not by ${asked[1]}`
}

const ofKind: Readonly<Record<Exclude<WorkKind, 'overdue'>, Pick<Listing, 'state' | 'parked'>>> = {
  unknown: { state: 'unknown' },
  parked: { parked: true },
}

export function coreListing({ kind, operation, scope, after }: WorkFilter, limit: number): Listing {
  return {
    ...(kind === 'overdue' ? {} : ofKind[kind]),
    ...(operation === undefined ? {} : { operation }),
    ...(scope === undefined ? {} : { scope: scopeText(scope) }),
    ...(after === undefined ? {} : { after }),
    limit,
  }
}

/** What `latchkey.settle` and its like wrote, numbered as it is read: the core gives its entries no id. */
export function coreEntries(id: string, audit: readonly AuditEntry[]): readonly OperatorEntry[] {
  const none = { source: undefined, requestId: undefined, evidence: undefined, from: undefined, to: undefined }
  return audit.map((entry, at) => ({
    ...entry,
    ...none,
    auditId: String(at + 1),
    id,
    fence: undefined,
    refused: undefined,
  }))
}

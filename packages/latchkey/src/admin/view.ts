/** A row as an operator sees it. */
import type { RowNotes, WorkRow } from '../ports/faculties/admin.ts'
import type { KeyRecord } from '../ports/store.ts'
import type { AdminContext } from './context.ts'
import { versionText } from './context.ts'
import { coreNotes } from './core.ts'
import type { AdminRow } from './results.ts'

export interface ViewParts extends Pick<WorkRow, 'cause' | 'effect' | 'evidence'> {
  readonly record: KeyRecord
  readonly notes: RowNotes
  readonly waitsForMs: number | undefined
  readonly quarantineMs: number
}

export function rowView({ record, notes, cause, effect, evidence, waitsForMs, quarantineMs }: ViewParts): AdminRow {
  const { id, scope, operation, state, parked, fence, attempts, crashes, recovery, description } = record
  const { unknown } = notes
  return {
    ...{ id, scope, operation, state, parked, fence, attempts, crashes, recovery, description },
    version: versionText(notes.version),
    cause: cause ?? unknown?.cause ?? record.lastErrorCode,
    effect,
    owner: notes.owner,
    note: notes.note,
    createdAtMs: record.createdAtMs,
    expiresAtMs: record.expiresAtMs,
    completedAtMs: record.completedAtMs,
    leaseLeftMs: record.leaseLeftMs,
    waitsForMs: waitsForMs ?? unknown?.forMs,
    quarantineLeftMs: unknown && Math.max(0, quarantineMs - unknown.forMs),
    nextLookUpInMs: unknown?.nextLookUpInMs,
    evidence,
  }
}

/** The row as it is now. Undefined: it is gone. */
export async function currentView(
  context: AdminContext,
  id: string,
  quarantineOf: (operation: string) => number,
): Promise<AdminRow | undefined> {
  const { store, call } = context
  const [found, noted] = await Promise.all([call(() => store.inspect(id)), call(async () => store.admin?.notes(id))])
  const { record, evidence } = found
  const notes = noted ?? (store.admin === undefined && record !== undefined ? coreNotes(record) : undefined)
  if (record === undefined || notes === undefined) return undefined
  const journal = record.recovery === 'resume' ? await call(async () => store.steps?.readJournal(id)) : undefined
  const open = journal?.steps?.find(step => step.kind === 'effect' && step.state === 'open')
  return rowView({
    record,
    notes,
    cause: undefined,
    effect: open?.name,
    evidence: evidence.length,
    waitsForMs: undefined,
    quarantineMs: quarantineOf(record.operation),
  })
}

/** A row as an operator sees it: what the store holds, and what follows from it. */
import type { StoredReference } from '../ports/faculties/references.ts'
import type { Journal, Step, UnreadableJournal } from '../ports/steps.ts'
import type { Inspection, KeyRecord } from '../ports/store.ts'
import { downstreamKey } from './execution.ts'

/** An effect that may have happened: look for its key at the provider. */
export interface OpenEffect {
  readonly name: string
  readonly epoch: number
  /** What the provider was given as the key of the call. */
  readonly downstreamKey: string
  /** Its provider still recognises the key, so a worker may repeat the call. */
  readonly repeatable: boolean
}

export interface InspectedRow extends Inspection {
  /** Of phased and deferred work, in their order, read right after the row. */
  readonly steps: readonly Step[]
  readonly openEffect: OpenEffect | undefined
  /** The names that its handler gave it. One that is older than the row is of an earlier use of its key. */
  readonly references: readonly { readonly text: string; readonly atMs: number }[]
  /**
   * Why the row is not simply completed or running: `in_progress_lock_expired` (its owner is silent, and no sweep has come yet), the code of
   * its last error, or why it or its steps cannot be read.
   */
  readonly cause: string | undefined
}

interface InspectedParts {
  readonly journal: Journal | UnreadableJournal | undefined
  readonly references: readonly StoredReference[] | undefined
}

export function inspectedRow(
  id: string,
  found: Inspection,
  { journal, references = [] }: InspectedParts,
): InspectedRow {
  const steps = journal?.steps ?? []
  const open = steps.find(step => step.kind === 'effect' && step.state === 'open')
  return {
    ...found,
    steps,
    openEffect: open && openEffect(id, open),
    references: references.map(({ index, atMs }) => ({ text: index, atMs })),
    cause: causeOf(found.record, journal),
  }
}

function openEffect(id: string, { name, epoch, repeatable }: Step): OpenEffect {
  return { name, epoch, downstreamKey: downstreamKey(id, name, 'uuid', epoch), repeatable }
}

function causeOf(record: KeyRecord | undefined, journal: Journal | UnreadableJournal | undefined): string | undefined {
  if (record === undefined || record.state === 'completed') return undefined
  if (record.state === 'unreadable') return record.why
  if (journal !== undefined && 'why' in journal) return journal.why
  const isSilent = record.state === 'in_progress' && record.leaseLeftMs <= 0
  return isSilent ? 'in_progress_lock_expired' : record.lastErrorCode
}

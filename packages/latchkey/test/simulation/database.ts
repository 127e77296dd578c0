/**
 * The database of the simulation: the memory store in virtual time. It serves one call after the other, and reports every change
 * of a row before it answers. Nothing fails or waits here; the network in front of it does.
 */
import type { Actor } from '../../src/engine/rules/transitions.ts'
import { systemClock } from '../../src/ports/clock.ts'
import type { EvidenceSource, FoundVerdict } from '../../src/ports/reconciliation.ts'
import { type MemoryStore, openMemoryStore } from '../../src/stores/memory/store.ts'
import { waiting } from '../../src/stores/memory/reconcile/apply.ts'
import { createTables, type Tables } from '../../src/stores/memory/tables.ts'
import { isExpired, type StoredRow } from './stored-row.ts'

export interface Change {
  readonly id: string
  readonly before: StoredRow | undefined
  readonly after: StoredRow | undefined
  readonly by: Actor
  readonly what: string
  /** What justifies it, if it leaves `unknown`. */
  readonly evidence: AppliedEvidence | undefined
}

export interface AppliedEvidence {
  readonly source: EvidenceSource
  readonly verdict: FoundVerdict
  /** When it was found. */
  readonly atMs: number
}

/** Who asks for something, and what it is called in a trace. */
export interface Cause {
  /** An owner whose row is unknown by then is a late one. */
  readonly by: Actor
  readonly what: string
  /** For a change that leaves `unknown`. Without a time: it is found when the call is served. */
  readonly evidence?: (Omit<AppliedEvidence, 'atMs'> & { readonly atMs?: number }) | undefined
}

export interface Database {
  readonly rows: ReadonlyMap<string, StoredRow>
  now(): number
  serve<T>(cause: Cause, call: (store: MemoryStore) => Promise<T>): Promise<T>
  /** A call that changes no row, or none that a rule is about. */
  read<T>(call: (store: MemoryStore) => Promise<T>): Promise<T>
  evidence(evidenceId: string): AppliedEvidence | undefined
  /** Evidence waits to be applied. */
  hasWaitingEvidence(): boolean
}

export interface DatabaseOptions {
  readonly nowMs: () => number
  readonly changed: (change: Change) => void
}

export function createDatabase({ nowMs, changed }: DatabaseOptions): Database {
  // Its transactions begin and end within one event, so that no limit of time is ever met.
  const clock = { ...systemClock, nowMs, monotonicMs: nowMs, after: () => () => {} }
  const tables = createTables(clock)
  const store = openMemoryStore(tables, { clock, transactionMs: 1, waitMs: 1 })
  const watched = watchRows(tables)
  let last: Promise<unknown> = Promise.resolve()

  /** One at a time: what changes between its beginning and its end is its own doing. */
  function serve<T>(cause: Cause, call: (store: MemoryStore) => Promise<T>): Promise<T> {
    const served = last.then(async () => {
      const result = await call(store)
      for (const { id, before, after } of watched.changes()) {
        changed({ id, before, after, ...causeOf(cause, before, tables.now()) })
      }
      return result
    })
    last = served.catch(() => undefined)
    return served
  }

  return {
    rows: watched.rows,
    now: tables.now,
    serve,
    read: call => serve({ by: 'request', what: 'read' }, call),
    evidence(evidenceId) {
      const found = tables.log.find(evidenceId)
      return found && { source: found.source, verdict: found.found, atMs: found.atMs }
    },
    hasWaitingEvidence: () => waiting(tables, { limit: 1 }).length > 0,
  }
}

function causeOf(
  { by, what, evidence: given }: Cause,
  before: StoredRow | undefined,
  nowMs: number,
): Pick<Change, 'by' | 'what' | 'evidence'> {
  const evidence = given && { atMs: nowMs, ...given }
  if (by !== 'owner') return { by, what, evidence }
  return before?.state === 'unknown' ? { by: 'late owner', what, evidence } : { by, what, evidence: undefined }
}

/** Rows are replaced and never changed in place: another object is a change. */
function watchRows({ rows, journals, now }: Tables) {
  const known = new Map<string, StoredRow & { readonly sources: readonly unknown[] }>()
  const generations = new Map<string, number>()

  function generationOf(id: string, { fence }: { readonly fence: number }): number {
    const before = known.get(id)
    const isGranted = before?.fence !== fence
    const begins = before === undefined || (isGranted && isExpired(before, now()))
    const generation = (generations.get(id) ?? 0) + (begins ? 1 : 0)
    generations.set(id, generation)
    return generation
  }

  function* changes(): Iterable<Pick<Change, 'id' | 'before' | 'after'>> {
    for (const [id, before] of known) {
      if (rows.get(id) !== undefined) continue
      known.delete(id)
      yield { id, before, after: undefined }
    }
    for (const [id, row] of rows.entries()) {
      const before = known.get(id)
      const journal = journals.get(id)
      if (before?.sources[0] === row && before.sources[1] === journal) continue
      const generation = generationOf(id, row)
      const deadlineAtMs = journal?.input?.deadlineAtMs
      const work = { hasInput: journal?.input !== undefined, deadlineAtMs, steps: journal?.steps ?? [] }
      const after = { ...row, ...work, generation, sources: [row, journal] }
      known.set(id, after)
      yield { id, before, after }
    }
  }

  return { rows: known as ReadonlyMap<string, StoredRow>, changes }
}

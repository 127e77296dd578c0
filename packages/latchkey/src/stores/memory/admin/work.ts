/** The queues of rows that are out of the ordinary. */
import type {
  Groups,
  RowNotes,
  WorkGroup,
  WorkKind,
  WorkListing,
  WorkPage,
  WorkRow,
} from '../../../ports/faculties/admin.ts'
import { workAfter } from '../../shared/admin/rows.ts'
import { isDead, type Row, toRecord } from '../keys/row.ts'
import { openEffect } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import { rowVersion } from './act.ts'

interface Waiting {
  readonly row: Row
  readonly sinceMs: number
  readonly cause: string
}

export function notes(tables: Tables, id: string): RowNotes | undefined {
  const row = tables.rows.get(id)
  return row && notesOf(tables, row)
}

function notesOf(tables: Tables, row: Row): RowNotes {
  const { doubt, lastErrorCode, parked } = row
  const nowMs = tables.now()
  const known = tables.admin.notes.get(row.id)
  const next = doubt?.lookUpAtMs === undefined || parked ? undefined : doubt.lookUpAtMs - nowMs
  return {
    version: rowVersion(tables, row),
    owner: known?.owner,
    note: known?.note,
    unknown: doubt && {
      cause: lastErrorCode ?? 'lease-expired',
      sinceMs: doubt.sinceMs,
      forMs: nowMs - doubt.sinceMs,
      nextLookUpInMs: next,
      lookUps: doubt.look,
    },
  }
}

function waiting(tables: Tables, kind: WorkKind): readonly Waiting[] {
  const nowMs = tables.now()
  const cause = ({ lastErrorCode }: Row) => lastErrorCode ?? 'lease-expired'
  const found = [...tables.rows.values()].flatMap((row): readonly Waiting[] => {
    if (kind === 'unknown') return row.doubt ? [{ row, sinceMs: row.doubt.sinceMs, cause: cause(row) }] : []
    if (kind === 'parked')
      return row.parked ? [{ row, sinceMs: row.doubt?.sinceMs ?? row.dueAtMs, cause: cause(row) }] : []
    return isDead(row, nowMs) ? [{ row, sinceMs: row.lockedUntilMs, cause: 'lease-expired' }] : []
  })
  return found.toSorted((left, right) => left.sinceMs - right.sinceMs || (left.row.id < right.row.id ? -1 : 1))
}

/** The oldest first. */
export function work(tables: Tables, listing: WorkListing): WorkPage {
  const { kind, limit, after } = listing
  const [since, id] = workAfter(after)
  const isAfter = ({ row, sinceMs }: Waiting) =>
    since === null || id === null || sinceMs > Number(since) || (sinceMs === Number(since) && row.id > id)
  const found = waiting(tables, kind).filter(each => isAfter(each) && matches(tables, each, listing))
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const next = found.length > limit && last !== undefined ? `${last.sinceMs}_${last.row.id}` : undefined
  return { rows: page.map(each => workRow(tables, each)), next, partial: false }
}

function matches(tables: Tables, { row, sinceMs, cause }: Waiting, listing: WorkListing): boolean {
  const wanted: readonly (readonly [unknown, unknown])[] = [
    [listing.operation, row.operation],
    [listing.scope, row.scope],
    [listing.cause, cause],
    [listing.owner, tables.admin.notes.get(row.id)?.owner],
  ]
  if (listing.olderThanMs !== undefined && sinceMs > tables.now() - listing.olderThanMs) return false
  return wanted.every(([given, found]) => given === undefined || given === found)
}

function workRow(tables: Tables, { row, sinceMs, cause }: Waiting): WorkRow {
  const nowMs = tables.now()
  return {
    record: { ...toRecord(row, nowMs), outcome: undefined },
    notes: notesOf(tables, row),
    cause,
    effect: openEffect(tables, row)?.name,
    waitsForMs: Math.max(0, nowMs - sinceMs),
    evidence: tables.log.evidenceOf(row.id).length,
  }
}

export function groups(tables: Tables, kind: WorkKind): Groups {
  const found = new Map<string, WorkGroup>()
  const nowMs = tables.now()
  for (const { row, sinceMs, cause } of waiting(tables, kind)) {
    const name = JSON.stringify([row.operation, cause])
    const { count = 0, oldestMs = 0 } = found.get(name) ?? {}
    const oldest = Math.max(oldestMs, nowMs - sinceMs)
    found.set(name, { operation: row.operation, cause, count: count + 1, oldestMs: oldest })
  }
  return { groups: [...found.values()].toSorted((left, right) => right.count - left.count), partial: false }
}

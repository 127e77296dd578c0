/** Questions to a provider about unknown rows, each with a number that fences it. */
import type { Lookup, LookupClaim, UnknownSummary } from '../../../ports/reconciliation.ts'
import type { OwnerResult } from '../../../ports/store.ts'
import type { Doubt, Row } from '../keys/row.ts'
import { openEffect } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'

export interface LookupOptions {
  readonly operation: string
  readonly firstInMs: number
  readonly leaseMs: number
  readonly limit: number
}

type UnknownRow = Row & { readonly doubt: Doubt }

function unknownRows({ rows }: Tables): readonly UnknownRow[] {
  return [...rows.values()].filter((row): row is UnknownRow => row.doubt !== undefined)
}

export function lookups(tables: Tables, { operation, firstInMs, leaseMs, limit }: LookupOptions): readonly Lookup[] {
  const nowMs = tables.now()
  const dueAtMs = ({ doubt }: UnknownRow) => doubt.lookUpAtMs ?? doubt.sinceMs + firstInMs
  return unknownRows(tables)
    .filter(row => row.operation === operation && !row.parked && dueAtMs(row) <= nowMs)
    .sort((left, right) => dueAtMs(left) - dueAtMs(right))
    .slice(0, limit)
    .map(row => granted(tables, row, nowMs + leaseMs))
}

/** Due again when the lease is over. */
function granted(tables: Tables, row: UnknownRow, untilMs: number): Lookup {
  const look = row.doubt.look + 1
  const tries = row.doubt.tries + 1
  tables.rows.set(row.id, { ...row, doubt: { ...row.doubt, look, tries, lookUpAtMs: untilMs, looking: true } })
  const { id, scope, operation, fence, createdAtMs, attempts } = row
  const unknownForMs = tables.now() - row.doubt.sinceMs
  const identity = { id, scope, operation }
  const effect = openEffect(tables, row)
  return { id, fence, look, tries, identity, unknownForMs, createdAtMs, attempts, effect }
}

function heldBy({ rows }: Tables, { id, fence, look }: LookupClaim): UnknownRow | undefined {
  const row = rows.get(id)
  if (row?.doubt === undefined || row.fence !== fence || row.doubt.look !== look) return undefined
  return { ...row, doubt: row.doubt }
}

export function postpone(tables: Tables, lookup: LookupClaim, inMs: number): OwnerResult {
  const row = heldBy(tables, lookup)
  if (row === undefined || row.parked) return 'claim-lost'
  // The reply to the first write was lost.
  if (!row.doubt.looking) return 'written'
  const doubt = { ...row.doubt, looking: false, lookUpAtMs: tables.now() + inMs }
  tables.rows.set(row.id, { ...row, doubt })
  return 'written'
}

export function giveUp(tables: Tables, lookup: LookupClaim, cause: string): OwnerResult {
  const row = heldBy(tables, lookup)
  if (row === undefined) return 'claim-lost'
  // The reply to the first write was lost; but not after a person has made the row due.
  if (!row.doubt.looking) return row.parked ? 'written' : 'claim-lost'
  tables.rows.set(row.id, { ...row, parked: true, lastErrorCode: cause, doubt: { ...row.doubt, looking: false } })
  return 'written'
}

export function nextLookUpInMs({ rows, now }: Tables, id: string): number | undefined {
  const row = rows.get(id)
  return row?.doubt?.lookUpAtMs === undefined || row.parked ? undefined : row.doubt.lookUpAtMs - now()
}

export function unknowns(tables: Tables): readonly UnknownSummary[] {
  const byOperation = new Map<string, readonly UnknownRow[]>()
  for (const row of unknownRows(tables)) {
    byOperation.set(row.operation, [...(byOperation.get(row.operation) ?? []), row])
  }
  return [...byOperation].map(([operation, rows]) => ({
    operation,
    count: rows.length,
    parked: rows.filter(row => row.parked).length,
    oldestMs: tables.now() - Math.min(...rows.map(row => row.doubt.sinceMs)),
  }))
}

/** The claim of guarded and phased work, and the reservation and the record of an atomic one. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { AtomicRequest, ClaimRequest, ClaimResult, GrantedFrom, Reservation } from '../../../ports/store.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { grantedFrom, grantedRow } from '../../shared/grant.ts'
import { isStuck, keepInput, readJournal } from '../steps/journal.ts'
import type { Writable } from '../tables.ts'
import { completedRow, newRow, readRecord } from './row.ts'

interface Found {
  readonly record: KeyRecord | undefined
  readonly from: GrantedFrom | undefined
}

function find(tables: Writable, { identity, fingerprint, takeOver }: ClaimRequest | AtomicRequest): Found {
  const record = readRecord(tables, identity.id)
  return { record, from: grantedFrom(record, { fingerprint, takeOver, isStuck: id => isStuck(tables, id) }) }
}

export function claim(tables: Writable, request: ClaimRequest): ClaimResult {
  const { record, from = 'none' } = find(tables, request)
  if (record !== undefined && from === 'none') return { kind: 'seen', record }
  const nowMs = tables.now()
  const row = newRow(grantedRow(record, request, nowMs), {
    state: 'in_progress',
    recovery: request.recovery,
    lockedUntilMs: nowMs + request.leaseMs,
    dueAtMs: nowMs,
    expiresAtMs: nowMs + request.expiresInMs,
  })
  tables.rows.set(row.id, row)
  const { id, fence, claimId, attempts: attempt, crashes } = row
  // What an earlier generation of the row left behind is not a step of this one.
  if (from === 'none' || from === 'expired') tables.journals.delete(id)
  if (request.work !== undefined) keepInput(tables, id, request.work)
  const journal = readJournal(tables, id)
  const won = { kind: 'won', claim: { id, fence, claimId }, attempt, crashes, from } as const
  return journal === undefined ? won : { ...won, journal }
}

/** `seen`: the row is not free for this request. */
export function reserve(tables: Writable, request: AtomicRequest): Exclude<Reservation, { kind: 'busy' }> {
  const { record, from = 'none' } = find(tables, request)
  if (record !== undefined && from === 'none') return { kind: 'seen', record }
  return { kind: 'free', fence: record?.fence ?? 0, from }
}

export function record(
  tables: Writable,
  request: AtomicRequest,
  { outcome, reservedFence }: { outcome: Outcome; reservedFence: number },
): 'recorded' | 'taken' {
  const { record: before, from } = find(tables, request)
  if ((before?.fence ?? 0) !== reservedFence || from === undefined) return 'taken'
  const nowMs = tables.now()
  const { id } = request.identity
  const { retentionMs } = request
  const row = newRow(grantedRow(before, request, nowMs), {
    state: 'in_progress',
    // As in every store: what is not committed was rolled back, and may run again.
    recovery: 'rerun',
    lockedUntilMs: nowMs,
    dueAtMs: nowMs,
    expiresAtMs: nowMs,
  })
  tables.rows.set(id, completedRow(row, { outcome, retentionMs, by: 'owner' }, nowMs))
  if (from === 'expired') tables.journals.delete(id)
  return 'recorded'
}

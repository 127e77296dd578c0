/** What the owner of a claim writes. Each write names fence AND claimId: a replaced owner matches no row. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, Evidence, Failure, OwnerResult } from '../../../ports/store.ts'
import { allowAgain, openEffect } from '../steps/journal.ts'
import type { Tables, Writable } from '../tables.ts'
import { completedRow, isOwner, type Row, unknownRow, untriedRow } from './row.ts'

/** The row, if it is in progress under this claim. */
export function ownedRow({ rows }: Writable, claim: Claim): Row | undefined {
  const row = rows.get(claim.id)
  return row?.state === 'in_progress' && isOwner(row, claim) ? row : undefined
}

export function heartbeat(tables: Writable, claim: Claim, leaseMs: number): OwnerResult {
  const row = ownedRow(tables, claim)
  if (row === undefined) return 'claim-lost'
  tables.rows.set(row.id, { ...row, lockedUntilMs: tables.now() + leaseMs })
  return 'written'
}

export function complete(tables: Tables, claim: Claim, answer: { outcome: Outcome; retentionMs: number }): OwnerResult {
  const row = tables.rows.get(claim.id)
  const evidence = lateOwner(claim, 'happened', tables.now())
  if (row !== undefined && isOwner(row, claim)) {
    if (row.state === 'completed' && row.answeredBy === 'owner') return 'written'
    // An answer for the whole says nothing about an effect that is in doubt: phased work needs that one settled first.
    const settles = row.state === 'unknown' && openEffect(tables, row) === undefined
    if (row.state === 'in_progress' || settles) {
      if (settles) tables.log.addLateOwner({ ...evidence, applied: true })
      tables.rows.set(row.id, completedRow(row, { ...answer, by: 'owner' }, tables.now()))
      return 'written'
    }
  }
  tables.log.addLateOwner({ ...evidence, applied: false })
  return 'claim-lost'
}

export function fail(tables: Tables, claim: Claim, failure: Failure): OwnerResult {
  const row = tables.rows.get(claim.id)
  const evidence = lateOwner(claim, failure.to === 'unknown' ? 'unknown' : 'never-happened', tables.now())
  if (row !== undefined && isOwner(row, claim)) {
    // The same word again after a lost reply, or after the sweeper wrote it first.
    if (row.state === failure.to) return 'written'
    if (failure.to === 'failed_retryable' && row.state === 'pending' && row.answeredBy === 'owner') return 'written'
    if (row.state === 'in_progress' || row.state === 'unknown') {
      if (row.state === 'unknown') tables.log.addLateOwner({ ...evidence, applied: true })
      if (failure.to === 'failed_retryable') allowAgain(tables, row.id, 'same-epoch')
      tables.rows.set(row.id, { ...failedRow(row, failure, tables.now()), lastErrorCode: failure.errorCode })
      return 'written'
    }
  }
  tables.log.addLateOwner({ ...evidence, applied: false })
  return 'claim-lost'
}

function failedRow(row: Row, { to, dueInMs }: Failure, nowMs: number): Row {
  if (to === 'unknown') return unknownRow(row, nowMs)
  if (row.state === 'unknown') return { ...untriedRow(row, nowMs + dueInMs), answeredBy: 'owner' }
  return { ...row, state: to, dueAtMs: nowMs + dueInMs }
}

export function release({ rows, now }: Writable, id: string, claimId: string): 'released' | 'not-yours' {
  const row = rows.get(id)
  if (row?.state !== 'in_progress' || row.claimId !== claimId) return 'not-yours'
  rows.set(id, { ...row, state: 'failed_retryable', dueAtMs: now() })
  return 'released'
}

function lateOwner(claim: Claim, verdict: Evidence['verdict'], atMs: number) {
  return { id: claim.id, claimId: claim.claimId, verdict, atMs }
}

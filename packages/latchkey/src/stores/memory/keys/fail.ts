/** The owner gives up: nothing happened, or it is unknown what happened, or the row is parked. */
import type { Claim, Failure, OwnerResult } from '../../../ports/store.ts'
import { allowAgain } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import { lateOwner } from './owner.ts'
import { isOwner, type Row, unknownRow, untriedRow } from './row.ts'

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

export function park({ rows, now }: Tables, claim: Claim, cause: string): OwnerResult {
  const row = rows.get(claim.id)
  if (row === undefined || !isOwner(row, claim)) return 'claim-lost'
  // Parked by this owner already: the reply to the first write was lost.
  if (row.parked && row.state === 'failed_retryable') return 'written'
  if (row.state !== 'in_progress') return 'claim-lost'
  rows.set(row.id, { ...row, state: 'failed_retryable', parked: true, dueAtMs: now(), lastErrorCode: cause })
  return 'written'
}

/** The owner's answer: in time, late, or repeated. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { openEffect } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import { lateOwner } from './owner.ts'
import { completedRow, isOwner } from './row.ts'

export function complete(tables: Tables, claim: Claim, answer: { outcome: Outcome; retentionMs: number }): OwnerResult {
  const row = tables.rows.get(claim.id)
  const nowMs = tables.now()
  if (row !== undefined && isOwner(row, claim)) {
    if (row.state === 'completed' && row.answeredBy === 'owner') return 'written'
    // An answer for the whole says nothing about an effect that is in doubt: phased work needs that one settled first.
    const settles = row.state === 'unknown' && openEffect(tables, row) === undefined
    if (row.state === 'in_progress' || settles) {
      if (settles) tables.log.addLateOwner({ ...lateOwner(claim, 'happened', nowMs), applied: true })
      const { outcome, retentionMs } = answer
      tables.rows.set(row.id, completedRow(row, { outcome, retentionMs, by: 'owner' }, nowMs))
      return 'written'
    }
  }
  tables.log.addLateOwner({ ...lateOwner(claim, 'happened', nowMs), applied: false })
  return 'claim-lost'
}

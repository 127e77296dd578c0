/** What becomes of rows after their time: nothing, or a tombstone first. */
import type { Tables } from '../tables.ts'
import { isGone, isOver, strippedRow } from './row.ts'

/** The row's evidence ends with its outcome, because it may hold a whole answer; its audit is kept for good. */
export function reap({ rows, journals, references, admin, log, now }: Tables, { limit }: { limit: number }): number {
  const over = [...rows.values()].filter(row => isOver(row, now())).slice(0, limit)
  for (const row of over) {
    if (isGone(row, now())) rows.set(row.id, strippedRow(row))
    else rows.delete(row.id)
    journals.delete(row.id)
    references.delete(row.id)
    admin.notes.delete(row.id)
    log.dropEvidence(row.id)
  }
  return over.length
}

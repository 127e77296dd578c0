/** Phased rows that a worker may claim. */
import type { Resumable } from '../../../ports/store.ts'
import { hasInput, isOverdue, isStuck } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import { isDead, isExpired, type Row } from './row.ts'

export function resumable(tables: Tables, { limit }: { limit: number }): readonly Resumable[] {
  return [...tables.rows.values()]
    .filter(row => row.recovery === 'resume' && isClaimable(tables, row))
    .sort((left, right) => waitingSinceMs(left) - waitingSinceMs(right))
    .slice(0, limit)
    .map(({ id, scope, operation, fingerprint, crashes }) => ({
      identity: { id, scope, operation },
      fingerprint: new Uint8Array(fingerprint),
      crashes,
      overdue: isOverdue(tables, id),
    }))
}

/** A row without an input was given back by a worker that found it so: only a request has one to begin again with. */
function isClaimable(tables: Tables, row: Row): boolean {
  const nowMs = tables.now()
  if (isDead(row, nowMs)) return !isStuck(tables, row.id)
  if (row.parked || (row.state !== 'pending' && row.state !== 'failed_retryable')) return false
  return row.dueAtMs <= nowMs && !isExpired(row, nowMs) && hasInput(tables, row.id)
}

function waitingSinceMs({ state, lockedUntilMs, dueAtMs }: Row): number {
  return state === 'in_progress' ? lockedUntilMs : dueAtMs
}

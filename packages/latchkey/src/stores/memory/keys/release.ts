/** Claims whose replies were lost, released: one or many, each compared by its claim id. */
import type { LostClaim } from '../../../ports/store.ts'
import type { Tables, Writable } from '../tables.ts'
import { untriedRow } from './row.ts'

export function release({ rows, now }: Writable, id: string, claimId: string): 'released' | 'not-yours' {
  const row = rows.get(id)
  if (row?.state !== 'in_progress' || row.claimId !== claimId) return 'not-yours'
  rows.set(id, { ...row, state: 'failed_retryable', dueAtMs: now() })
  return 'released'
}

export function releaseMany(tables: Tables, claims: readonly LostClaim[]): readonly string[] {
  return claims.filter(claim => isOver(tables, claim)).map(({ claimId }) => claimId)
}

function isOver({ rows, log, now }: Tables, { id, claimId }: LostClaim): boolean {
  const row = rows.get(id)
  if (row?.claimId !== claimId || row.recovery === 'resume') return false
  if (row.state === 'failed_retryable') return true
  if (row.state === 'in_progress') {
    rows.set(id, { ...row, state: 'failed_retryable', dueAtMs: now() })
    return true
  }
  // What a reconciler would apply stands in the way; evidence about an earlier generation of the row does not.
  const happened = log
    .namedOf(id)
    .some(({ verdict, atMs }) => (verdict === 'happened' || verdict === 'declined') && atMs >= row.createdAtMs)
  if (row.state !== 'unknown' || happened) return false
  log.addLateOwner({ id, claimId, verdict: 'never-happened', applied: true, atMs: now() })
  rows.set(id, { ...untriedRow(row, now()), answeredBy: 'owner' })
  return true
}

/** What the writes of a claim's owner share. Each write names fence AND claimId: a replaced owner matches no row. */
import type { Claim, Evidence } from '../../../ports/store.ts'
import type { LateOwner } from '../reconcile/evidence-and-audit.ts'
import type { Writable } from '../tables.ts'
import { isOwner, type Row } from './row.ts'

/** The row, if it is in progress under this claim. */
export function ownedRow({ rows }: Writable, claim: Claim): Row | undefined {
  const row = rows.get(claim.id)
  return row?.state === 'in_progress' && isOwner(row, claim) ? row : undefined
}

export function lateOwner(claim: Claim, verdict: Evidence['verdict'], atMs: number): Omit<LateOwner, 'applied'> {
  return { id: claim.id, claimId: claim.claimId, verdict, atMs }
}

/** What the writes of a claim's owner share. Each write names fence AND claimId: a replaced owner matches no row. */
import type { Claim, Evidence, RowState } from '../../../ports/store.ts'
import { rowStateOf, stateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'

const { in_progress: inProgress } = stateCodes

const isOwnerSql = `
  SELECT id FROM latchkey_keys WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${inProgress}`

export function isOwner(handle: Handle, { id, fence, claimId }: Claim): boolean {
  return handle.rows(isOwnerSql, [id, fence, claimId]).length === 1
}

export interface RowBefore {
  readonly state: RowState
  readonly isOwner: boolean
  readonly byOwner: boolean
}

const beforeSql = `
  SELECT k.state, k.fence = ?2 AND k.claim_id = ?3 AS is_owner, k.outcome IS NOT NULL OR o.by_operator = 0 AS by_owner
  FROM latchkey_keys AS k LEFT JOIN latchkey_outcomes AS o ON o.id = k.id AND o.fence = k.fence
  WHERE k.id = ?1`

/** The row before the write, to distinguish a late answer from one in time. The write itself is guarded on its own. */
export function readBefore(handle: Handle, claim: Claim): RowBefore | undefined {
  const [row] = handle.rows(beforeSql, [claim.id, claim.fence, claim.claimId])
  if (row === undefined) return undefined
  return { state: rowStateOf(Number(row.state)), isOwner: row.is_owner === 1, byOwner: row.by_owner === 1 }
}

export function lateOwner(verdict: Evidence['verdict'], atMs: number): Pick<Evidence, 'source' | 'verdict' | 'atMs'> {
  return { source: 'late-owner', verdict, atMs }
}

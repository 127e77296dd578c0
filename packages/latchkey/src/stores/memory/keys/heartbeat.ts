/** A heartbeat renews the owner's lease. */
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import type { Writable } from '../tables.ts'
import { ownedRow } from './owner.ts'

export function heartbeat(tables: Writable, claim: Claim, leaseMs: number): OwnerResult {
  const row = ownedRow(tables, claim)
  if (row === undefined) return 'claim-lost'
  tables.rows.set(row.id, { ...row, lockedUntilMs: tables.now() + leaseMs })
  return 'written'
}

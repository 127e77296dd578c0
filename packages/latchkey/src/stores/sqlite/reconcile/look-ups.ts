/** Questions to a provider about unknown rows, each with a number that fences it. A look-up row is there while its key is unknown. */
import type { Lookup, LookupClaim, UnknownSummary } from '../../../ports/reconciliation.ts'
import type { OwnerResult } from '../../../ports/store.ts'
import { recoveryCodes } from '../../shared/codes.ts'
import type { SqliteRow } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { openEffect } from '../steps/journal.ts'
import { readNowMs, storable } from '../keys/row.ts'

export interface LookupOptions {
  readonly operation: string
  readonly firstInMs: number
  readonly leaseMs: number
  readonly limit: number
}

export const dueSql: string = `
  SELECT l.id, l.fence, l.look, l.tries, l.since_ms, k.scope, k.operation, k.created_at_ms, k.attempts, k.recovery
  FROM latchkey_lookups AS l CROSS JOIN latchkey_keys AS k ON k.id = l.id
  WHERE l.operation = ?1 AND l.look_up_at_ms <= ?2 AND (l.look > 0 OR l.since_ms <= ?2 - ?3)
  ORDER BY l.look_up_at_ms LIMIT ?4`

// Due again when the lease is over, and behind the others: a look-up that kills its process delays no other.
const grantSql = `
  UPDATE latchkey_lookups SET look = look + 1, tries = tries + 1, look_up_at_ms = ?2, looked_until_ms = ?2 WHERE id = ?1`

export function lookups(handle: Handle, options: LookupOptions): readonly Lookup[] {
  const { operation, firstInMs, leaseMs, limit } = options
  const nowMs = readNowMs(handle)
  const due = handle.rows(dueSql, [storable(operation), nowMs, Math.ceil(firstInMs), limit])
  return due.map(row => {
    handle.rows(grantSql, [String(row.id), Math.ceil(nowMs + leaseMs)])
    return lookupFrom(handle, row, nowMs)
  })
}

function lookupFrom(handle: Handle, row: SqliteRow, nowMs: number): Lookup {
  const id = String(row.id)
  return {
    id,
    fence: Number(row.fence),
    look: Number(row.look) + 1,
    identity: { id, scope: String(row.scope), operation: String(row.operation) },
    tries: Number(row.tries) + 1,
    unknownForMs: nowMs - Number(row.since_ms),
    createdAtMs: Number(row.created_at_ms),
    attempts: Number(row.attempts),
    effect: row.recovery === recoveryCodes.resume ? openEffect(handle, id) : undefined,
  }
}

const postponeSql = `
  UPDATE latchkey_lookups SET look_up_at_ms = ?4, looked_until_ms = NULL
  WHERE id = ?1 AND fence = ?2 AND look = ?3 AND looked_until_ms IS NOT NULL
  RETURNING id`
const endedSql = `
  SELECT look_up_at_ms FROM latchkey_lookups WHERE id = ?1 AND fence = ?2 AND look = ?3 AND looked_until_ms IS NULL`

export function postpone(handle: Handle, { id, fence, look }: LookupClaim, inMs: number): OwnerResult {
  const nextAtMs = Math.ceil(readNowMs(handle) + inMs)
  if (handle.rows(postponeSql, [id, fence, look, nextAtMs]).length === 1) return 'written'
  // The reply to the first write was lost.
  const [ended] = handle.rows(endedSql, [id, fence, look])
  return ended !== undefined && ended.look_up_at_ms !== null ? 'written' : 'claim-lost'
}

const giveUpSql = `
  UPDATE latchkey_lookups SET look_up_at_ms = NULL, looked_until_ms = NULL
  WHERE id = ?1 AND fence = ?2 AND look = ?3 AND looked_until_ms IS NOT NULL
  RETURNING id`
const parkSql = 'UPDATE latchkey_keys SET parked_at_ms = ?2, last_error_code = ?3 WHERE id = ?1'

export function giveUp(handle: Handle, { id, fence, look }: LookupClaim, cause: string): OwnerResult {
  if (handle.rows(giveUpSql, [id, fence, look]).length === 1) {
    handle.rows(parkSql, [id, readNowMs(handle), storable(cause)])
    return 'written'
  }
  // The reply to the first write was lost; but not after a person has made the row due.
  const [ended] = handle.rows(endedSql, [id, fence, look])
  return ended?.look_up_at_ms === null ? 'written' : 'claim-lost'
}

const askAgainSql = 'UPDATE latchkey_lookups SET look_up_at_ms = ?2, looked_until_ms = NULL, tries = 0 WHERE id = ?1'

/** A person unparked the row. */
export function askAgain(handle: Handle, id: string, atMs: number): void {
  handle.rows(askAgainSql, [id, atMs])
}

const nextSql = 'SELECT look_up_at_ms FROM latchkey_lookups WHERE id = ?1 AND look > 0 AND look_up_at_ms IS NOT NULL'

export function nextLookUpInMs(handle: Handle, id: string): number | undefined {
  const [row] = handle.rows(nextSql, [id])
  return row && Number(row.look_up_at_ms) - readNowMs(handle)
}

export const unknownsSql: string = `
  SELECT operation, COUNT(*) AS count, SUM(look_up_at_ms IS NULL) AS parked, MIN(since_ms) AS since_ms
  FROM latchkey_lookups GROUP BY operation`

export function unknowns(handle: Handle): readonly UnknownSummary[] {
  const nowMs = readNowMs(handle)
  return handle.rows(unknownsSql).map(row => ({
    operation: String(row.operation),
    count: Number(row.count),
    parked: Number(row.parked),
    oldestMs: nowMs - Number(row.since_ms),
  }))
}

/** Taking a row out of all automatic work, and giving it back. */
import type { Act, Claim, OwnerResult, UnparkResult } from '../../../ports/store.ts'
import { unparkDetail } from '../../shared/audit-detail.ts'
import type { Tables } from '../tables.ts'
import { isOwner } from './row.ts'

export function park({ rows, now }: Tables, claim: Claim, cause: string): OwnerResult {
  const row = rows.get(claim.id)
  if (row === undefined || !isOwner(row, claim)) return 'claim-lost'
  // Parked by this owner already: the reply to the first write was lost.
  if (row.parked && row.state === 'failed_retryable') return 'written'
  if (row.state !== 'in_progress') return 'claim-lost'
  rows.set(row.id, { ...row, state: 'failed_retryable', parked: true, dueAtMs: now(), lastErrorCode: cause })
  return 'written'
}

/** Past its expiry, the row gets the time again that it was given: it is unparked to continue, not to be reaped. */
export function unpark({ rows, log, now }: Tables, id: string, { by, reason }: Act): UnparkResult {
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (!row.parked) return { kind: 'not-parked' }
  const atMs = now()
  const expiresAtMs = Math.max(row.expiresAtMs, atMs + row.expiresAtMs - row.createdAtMs)
  const doubt = row.doubt && { ...row.doubt, tries: 0, looking: false, lookUpAtMs: atMs }
  rows.set(id, { ...row, parked: false, dueAtMs: atMs, crashes: 0, expiresAtMs, doubt })
  log.addAudit(id, { by, reason, act: 'unpark', atMs, detail: unparkDetail(row) })
  return { kind: 'unparked' }
}

/** One key's row in memory, and the rules that only look at it. Rows are never changed in place, only replaced. */
import type { Outcome } from '../../ports/outcome.ts'
import type { Claim, ClaimRequest, GrantedFrom, KeyRecord, Recovery, State } from '../../ports/store.ts'

export interface Row {
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly state: State
  readonly recovery: Recovery
  readonly fingerprint: Uint8Array
  readonly fence: number
  readonly claimId: string
  readonly attempts: number
  readonly crashes: number
  readonly parked: boolean
  readonly lockedUntilMs: number
  readonly dueAtMs: number
  readonly createdAtMs: number
  readonly completedAtMs: number | undefined
  readonly expiresAtMs: number
  readonly description: string | undefined
  readonly lastErrorCode: string | undefined
  readonly outcome: Outcome | undefined
  /** An operator's answer is not the owner's: the owner's own `complete` afterwards is late, not a repetition. */
  readonly answeredBy: 'owner' | 'operator' | undefined
}

/** Why this claim may be granted; `undefined`: it may not. */
export function grantedOver(row: Row, fingerprint: Uint8Array, nowMs: number): GrantedFrom | undefined {
  if (isExpired(row, nowMs)) return 'expired'
  // Before the state: a key reused for another request is never granted, not even over a dead lease.
  if (row.parked || !sameBytes(row.fingerprint, fingerprint)) return undefined
  switch (row.state) {
    case 'pending':
    case 'failed_retryable':
      return row.dueAtMs <= nowMs ? row.state : undefined
    case 'in_progress':
      // No steps are kept here, so no intent is ever open.
      return row.recovery !== 'hold' && isDead(row, nowMs) ? 'dead-lease' : undefined
    default:
      return undefined
  }
}

/** The row after a grant. An expired row counts as absent: only its fence lives on. */
export function grantedRow(row: Row | undefined, request: ClaimRequest, from: GrantedFrom, nowMs: number): Row {
  const before = from === 'expired' ? undefined : row
  return {
    id: request.identity.id,
    scope: request.identity.scope,
    operation: request.identity.operation,
    state: 'in_progress',
    recovery: request.recovery,
    fingerprint: new Uint8Array(request.fingerprint),
    fence: (row?.fence ?? 0) + 1,
    claimId: request.claimId,
    attempts: (before?.attempts ?? 0) + 1,
    crashes: (before?.crashes ?? 0) + (from === 'dead-lease' ? 1 : 0),
    parked: false,
    lockedUntilMs: nowMs + request.leaseMs,
    dueAtMs: nowMs,
    createdAtMs: before?.createdAtMs ?? nowMs,
    completedAtMs: undefined,
    expiresAtMs: nowMs + request.expiresInMs,
    description: request.description ?? before?.description,
    lastErrorCode: before?.lastErrorCode,
    outcome: undefined,
    answeredBy: undefined,
  }
}

/** Moves the expiry only if the answer would live shorter than promised: nothing shortens a row's life. */
export function completedRow(
  row: Row,
  answer: { outcome: Outcome; retentionMs: number; by: 'owner' | 'operator' },
  nowMs: number,
): Row {
  return {
    ...row,
    state: 'completed',
    completedAtMs: nowMs,
    expiresAtMs: Math.max(row.expiresAtMs, nowMs + answer.retentionMs),
    outcome: copyOutcome(answer.outcome),
    answeredBy: answer.by,
  }
}

export function isOwner(row: Row, claim: Claim): boolean {
  return row.fence === claim.fence && row.claimId === claim.claimId
}

export function isDead(row: Row, nowMs: number): boolean {
  return row.state === 'in_progress' && row.lockedUntilMs <= nowMs
}

export function isExpired(row: Row, nowMs: number): boolean {
  return (row.state === 'completed' || row.state === 'failed_retryable') && !row.parked && row.expiresAtMs <= nowMs
}

export function toRecord(row: Row, nowMs: number): KeyRecord {
  const { lockedUntilMs, dueAtMs, answeredBy: _, ...kept } = row
  return {
    ...kept,
    fingerprint: new Uint8Array(row.fingerprint),
    leaseLeftMs: row.state === 'in_progress' ? lockedUntilMs - nowMs : 0,
    dueInMs: row.state === 'failed_retryable' ? dueAtMs - nowMs : 0,
    expired: isExpired(row, nowMs),
    outcome: row.outcome && copyOutcome(row.outcome),
  }
}

/** `new Uint8Array`, not `slice`: a Buffer's slice shares its memory with the caller. */
function copyOutcome({ status, headers, body, version }: Outcome): Outcome {
  return {
    status,
    headers: headers.map(([name, value]) => [name, value] as const),
    body: body && new Uint8Array(body),
    version,
  }
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at])
}

/** One key's row in memory, and the rules that only look at it. Rows are never changed in place, only replaced. */
import type { Outcome } from '../../ports/outcome.ts'
import type { Claim, ClaimRequest, GrantedFrom, KeyRecord, Recovery, State, TakeOver } from '../../ports/store.ts'

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
  readonly tombstoneMs: number | undefined
  /** The reaper took all but the tombstone: the expiry is the tombstone's. */
  readonly stripped: boolean
  readonly description: string | undefined
  readonly lastErrorCode: string | undefined
  readonly outcome: Outcome | undefined
  /** An answer by evidence is not the owner's: the owner's own `complete` afterwards is late, not a repetition. */
  readonly answeredBy: 'owner' | 'evidence' | undefined
  /** Exactly while the row is unknown. */
  readonly doubt: Doubt | undefined
}

/** Since when nobody knows, and who asks about it. */
export interface Doubt {
  readonly sinceMs: number
  readonly look: number
  readonly tries: number
  /** Absent: nobody looked yet, and when the first one does is the asker's to say. */
  readonly lookUpAtMs: number | undefined
  /** A look-up is under way. */
  readonly looking: boolean
}

/** Why this claim may be granted; `undefined`: it may not. */
export function grantedOver(
  row: Row,
  { fingerprint, takeOver }: Pick<ClaimRequest, 'fingerprint' | 'takeOver'>,
  nowMs: number,
): GrantedFrom | undefined {
  if (isExpired(row, nowMs)) return 'expired'
  if (!mayTakeOver(row, takeOver)) return undefined
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

function mayTakeOver({ fence, claimId }: Row, takeOver: TakeOver | undefined): boolean {
  if (takeOver === undefined) return true
  return takeOver !== 'none' && takeOver.fence === fence && takeOver.claimId === claimId
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
    tombstoneMs: request.tombstoneMs,
    stripped: false,
    description: request.description ?? before?.description,
    lastErrorCode: before?.lastErrorCode,
    outcome: undefined,
    answeredBy: undefined,
    doubt: undefined,
  }
}

/** Every way into `unknown`. */
export function unknownRow(row: Row, nowMs: number): Row {
  const doubt = { sinceMs: nowMs, look: 0, tries: 0, lookUpAtMs: undefined, looking: false }
  return { ...row, state: 'unknown', doubt }
}

/** Moves the expiry only if the answer would live shorter than promised: nothing shortens a row's life. */
export function completedRow(
  row: Row,
  answer: { outcome: Outcome; retentionMs: number; by: 'owner' | 'evidence' },
  nowMs: number,
): Row {
  return {
    ...row,
    state: 'completed',
    parked: false,
    doubt: undefined,
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

/** Counts as absent. */
export function isExpired(row: Row, nowMs: number): boolean {
  return isOver(row, nowMs) && !isGone(row, nowMs)
}

/** Only a completed row leaves a tombstone. */
export function isGone(row: Row, nowMs: number): boolean {
  if (row.state !== 'completed') return false
  if (row.stripped) return !isOver(row, nowMs)
  return isOver(row, nowMs) && row.tombstoneMs !== undefined && row.expiresAtMs + row.tombstoneMs > nowMs
}

/** What the reaper finds: to be deleted, or to be stripped. */
export function isOver(row: Row, nowMs: number): boolean {
  return (row.state === 'completed' || row.state === 'failed_retryable') && !row.parked && row.expiresAtMs <= nowMs
}

export function strippedRow(row: Row): Row {
  const { expiresAtMs, tombstoneMs = 0 } = row
  return { ...row, stripped: true, expiresAtMs: expiresAtMs + tombstoneMs, outcome: undefined, answeredBy: undefined }
}

export function toRecord(row: Row, nowMs: number): KeyRecord {
  const gone = isGone(row, nowMs)
  // Member by member: leaving some out of a spread takes ten times as long, and a replay does little else.
  return {
    id: row.id,
    scope: row.scope,
    operation: row.operation,
    state: row.state,
    recovery: row.recovery,
    fingerprint: new Uint8Array(row.fingerprint),
    fence: row.fence,
    claimId: row.claimId,
    attempts: row.attempts,
    crashes: row.crashes,
    parked: row.parked,
    leaseLeftMs: row.state === 'in_progress' ? row.lockedUntilMs - nowMs : 0,
    dueInMs: row.state === 'failed_retryable' || row.state === 'pending' ? row.dueAtMs - nowMs : 0,
    createdAtMs: row.createdAtMs,
    ageMs: nowMs - row.createdAtMs,
    completedAtMs: row.completedAtMs,
    expiresAtMs: row.expiresAtMs,
    expired: isExpired(row, nowMs),
    gone,
    description: row.description,
    lastErrorCode: row.lastErrorCode,
    outcome: row.outcome && !gone ? copyOutcome(row.outcome) : undefined,
  }
}

/** `new Uint8Array`, not `slice`: a Buffer's slice shares its memory with the caller. */
export function copyOutcome({ status, headers, body, version }: Outcome): Outcome {
  return {
    status,
    headers: headers.map(([name, value]) => [name, value] as const),
    body: body && new Uint8Array(body),
    version,
  }
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}

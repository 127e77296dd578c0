/** One key's row in memory, and the rules that only look at it. Rows are never changed in place, only replaced. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, KeyRecord, Recovery, State } from '../../../ports/store.ts'
import type { GrantedRow } from '../../shared/grant.ts'
import type { Writable } from '../tables.ts'

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

/** Since when the row is unknown, and the look-ups about it. */
export interface Doubt {
  readonly sinceMs: number
  readonly look: number
  readonly tries: number
  /** Absent: no look-up was granted yet; its caller decides when the first one is due. */
  readonly lookUpAtMs: number | undefined
  /** A look-up is under way. */
  readonly looking: boolean
}

/** What a grant decides beside what every row has. */
type GrantedState = Pick<Row, 'state' | 'recovery' | 'lockedUntilMs' | 'dueAtMs' | 'expiresAtMs'>

/** The row of a grant: without an answer, a doubt or a mark. */
export function newRow(
  granted: GrantedRow,
  { state, recovery, lockedUntilMs, dueAtMs, expiresAtMs }: GrantedState,
): Row {
  // Member by member: every claim builds a row, and building it from two spreads took three times as long.
  return {
    id: granted.id,
    scope: granted.scope,
    operation: granted.operation,
    state,
    recovery,
    fingerprint: granted.fingerprint,
    fence: granted.fence,
    claimId: granted.claimId,
    attempts: granted.attempts,
    crashes: granted.crashes,
    parked: false,
    lockedUntilMs,
    dueAtMs,
    createdAtMs: granted.createdAtMs,
    completedAtMs: undefined,
    expiresAtMs,
    tombstoneMs: granted.tombstoneMs,
    stripped: false,
    description: granted.description,
    lastErrorCode: granted.lastErrorCode,
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

/** Proven: nothing happened. Phased work has steps behind it and continues; guarded work begins again. */
export function untriedRow(row: Row, dueAtMs: number): Row & { state: 'pending' | 'failed_retryable' } {
  const state = row.recovery === 'resume' ? 'pending' : 'failed_retryable'
  return { ...row, state, dueAtMs, parked: false, doubt: undefined }
}

/** Moves the expiry only if the answer would be kept for less time than promised: nothing shortens it. */
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

export function readRecord({ rows, now }: Pick<Writable, 'rows' | 'now'>, id: string): KeyRecord | undefined {
  const row = rows.get(id)
  return row && toRecord(row, now())
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

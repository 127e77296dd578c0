/** A key's row in the model, and the rules that look at nothing else. Written from the port, not from a store. */
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Journal, StepState, WorkInput } from '../../src/ports/steps.ts'
import type { Claim, ClaimRequest, GrantedFrom, Identity, KeyRecord, Recovery, State } from '../../src/ports/store.ts'

export interface ModelStep {
  readonly position: number
  readonly name: string
  readonly kind: 'phase' | 'effect'
  readonly state: StepState
  readonly result: string | undefined
  readonly epoch: number
  readonly openedAtMs: number
  readonly windowMs: number | undefined
  /** The downstream key of its latest intent, and the epoch it was made in. */
  readonly key: string | undefined
  readonly keyEpoch: number
}

/** Since when nobody knows, and who asks about it. */
export interface ModelDoubt {
  readonly sinceMs: number
  readonly look: number
  readonly tries: number
  /** Absent: nobody looked yet. */
  readonly lookUpAtMs: number | undefined
  /** A look-up is under way. */
  readonly looking: boolean
}

/** Never changed in place: whoever holds the same object has seen the latest. */
export interface ModelRow {
  readonly identity: Identity
  /** Counts grants over nothing or over an expired row: what happened in another life is not this one's. */
  readonly life: number
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
  /** The reaper left the tombstone only: the expiry is the tombstone's. */
  readonly stripped: boolean
  readonly errorCode: string | undefined
  readonly outcome: Outcome | undefined
  /** Who had the last word: the owner's own one again is a repetition, after somebody else's it comes too late. */
  readonly saidBy: 'owner' | 'evidence' | undefined
  readonly work: WorkInput | undefined
  readonly deadlineAtMs: number | undefined
  readonly steps: readonly ModelStep[]
  /** Exactly while the row is unknown. */
  readonly doubt: ModelDoubt | undefined
}

function isOver({ state, parked, steps, expiresAtMs }: ModelRow, nowMs: number): boolean {
  // A row that failed with an intent still open (unparked, or released) may have done something: it is never taken for absent.
  const inDoubt = state !== 'completed' && steps.some(step => step.state === 'open')
  const finished = state === 'completed' || state === 'failed_retryable'
  return finished && !inDoubt && !parked && expiresAtMs <= nowMs
}

export function isGone(row: ModelRow, nowMs: number): boolean {
  if (row.state !== 'completed') return false
  if (row.stripped) return !isOver(row, nowMs)
  return isOver(row, nowMs) && row.tombstoneMs !== undefined && nowMs < row.expiresAtMs + row.tombstoneMs
}

export function isExpired(row: ModelRow, nowMs: number): boolean {
  return isOver(row, nowMs) && !isGone(row, nowMs)
}

export function isOverdue(row: ModelRow, nowMs: number): boolean {
  return row.state === 'in_progress' && row.lockedUntilMs <= nowMs
}

/** Work that was not begun in time. */
export function isTooLate({ deadlineAtMs }: ModelRow, nowMs: number): boolean {
  return deadlineAtMs !== undefined && deadlineAtMs <= nowMs
}

export function isOwnedBy(row: ModelRow | undefined, claim: Claim): row is ModelRow {
  return row?.fence === claim.fence && row.claimId === claim.claimId
}

export function isRepeatable({ state, openedAtMs, windowMs }: ModelStep, nowMs: number): boolean {
  return state === 'open' && windowMs !== undefined && nowMs < openedAtMs + windowMs
}

/** The effect in doubt; steps are reached in order, so it is the only one. */
export function openEffect({ recovery, steps }: ModelRow): ModelStep | undefined {
  return recovery === 'resume' ? steps.find(step => step.state === 'open') : undefined
}

export type Asked = Pick<ClaimRequest, 'fingerprint' | 'takeOver'>

/** An open intent that may not be repeated: nobody can go on. */
export function isStuck(row: ModelRow, nowMs: number): boolean {
  return row.steps.some(step => step.state === 'open' && !isRepeatable(step, nowMs))
}

export function grantedFrom(row: ModelRow | undefined, asked: Asked, nowMs: number): GrantedFrom | 'seen' {
  const { fingerprint, takeOver } = asked
  if (row === undefined) return 'none'
  if (isExpired(row, nowMs)) return 'expired'
  if (takeOver === 'none') return 'seen'
  if (takeOver !== undefined && (takeOver.fence !== row.fence || takeOver.claimId !== row.claimId)) return 'seen'
  if (row.parked || Buffer.compare(row.fingerprint, fingerprint) !== 0) return 'seen'
  if (row.state === 'failed_retryable' || row.state === 'pending') return row.dueAtMs <= nowMs ? row.state : 'seen'
  if (!isOverdue(row, nowMs) || row.recovery === 'hold') return 'seen'
  return row.recovery === 'resume' && isStuck(row, nowMs) ? 'seen' : 'dead-lease'
}

export function recordOf(row: ModelRow, nowMs: number): KeyRecord {
  const { state, recovery, fingerprint, fence, claimId, attempts, crashes, parked } = row
  const gone = isGone(row, nowMs)
  return {
    ...row.identity,
    ...{ state, recovery, fingerprint, fence, claimId, attempts, crashes, parked, gone },
    leaseLeftMs: state === 'in_progress' ? row.lockedUntilMs - nowMs : 0,
    dueInMs: state === 'failed_retryable' || state === 'pending' ? row.dueAtMs - nowMs : 0,
    expired: isExpired(row, nowMs),
    createdAtMs: row.createdAtMs,
    ageMs: nowMs - row.createdAtMs,
    completedAtMs: row.completedAtMs,
    expiresAtMs: row.expiresAtMs,
    description: undefined,
    lastErrorCode: row.errorCode,
    outcome: gone ? undefined : row.outcome,
  }
}

export function journalOf(row: ModelRow, nowMs: number): Journal | undefined {
  const { work, steps } = row
  if (work === undefined) return undefined
  return {
    work: { version: work.version, input: work.input },
    overdue: isTooLate(row, nowMs),
    steps: steps.map(step => ({
      position: step.position,
      name: step.name,
      kind: step.kind,
      state: step.state,
      value: step.result,
      epoch: step.epoch,
      repeatable: isRepeatable(step, nowMs),
    })),
  }
}

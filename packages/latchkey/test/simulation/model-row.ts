/** A key's row in the model, and the rules that look at nothing else. Written from the port, not from a store. */
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Journal, StepState, WorkInput } from '../../src/ports/steps.ts'
import type { Claim, GrantedFrom, Identity, KeyRecord, Recovery, State } from '../../src/ports/store.ts'

export interface ModelStep {
  readonly position: number
  readonly name: string
  readonly kind: 'phase' | 'effect'
  readonly state: StepState
  readonly result: string | undefined
  readonly epoch: number
  readonly openedAtMs: number
  readonly windowMs: number | undefined
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
  readonly errorCode: string | undefined
  readonly outcome: Outcome | undefined
  readonly answeredBy: 'owner' | 'operator' | undefined
  readonly work: WorkInput | undefined
  readonly steps: readonly ModelStep[]
}

/** A row that failed with an intent still open (unparked, or released) may have done something: it is never taken for absent. */
export function isExpired(row: ModelRow, nowMs: number): boolean {
  const inDoubt = row.state !== 'completed' && row.steps.some(step => step.state === 'open')
  const finished = row.state === 'completed' || row.state === 'failed_retryable'
  return finished && !inDoubt && !row.parked && row.expiresAtMs <= nowMs
}

export function isOverdue(row: ModelRow, nowMs: number): boolean {
  return row.state === 'in_progress' && row.lockedUntilMs <= nowMs
}

export function isOwnedBy(row: ModelRow | undefined, claim: Claim): row is ModelRow {
  return row?.fence === claim.fence && row.claimId === claim.claimId
}

export function isRepeatable({ state, openedAtMs, windowMs }: ModelStep, nowMs: number): boolean {
  return state === 'open' && windowMs !== undefined && nowMs < openedAtMs + windowMs
}

/** An open intent that may not be repeated: nobody can go on. */
export function isStuck(row: ModelRow, nowMs: number): boolean {
  return row.steps.some(step => step.state === 'open' && !isRepeatable(step, nowMs))
}

export function grantedFrom(row: ModelRow | undefined, fingerprint: Uint8Array, nowMs: number): GrantedFrom | 'seen' {
  if (row === undefined) return 'none'
  if (isExpired(row, nowMs)) return 'expired'
  if (row.parked || Buffer.compare(row.fingerprint, fingerprint) !== 0) return 'seen'
  if (row.state === 'failed_retryable' || row.state === 'pending') return row.dueAtMs <= nowMs ? row.state : 'seen'
  if (!isOverdue(row, nowMs) || row.recovery === 'hold') return 'seen'
  return row.recovery === 'resume' && isStuck(row, nowMs) ? 'seen' : 'dead-lease'
}

export function recordOf(row: ModelRow, nowMs: number): KeyRecord {
  const { state, recovery, fingerprint, fence, claimId, attempts, crashes, parked } = row
  return {
    ...row.identity,
    ...{ state, recovery, fingerprint, fence, claimId, attempts, crashes, parked },
    leaseLeftMs: state === 'in_progress' ? row.lockedUntilMs - nowMs : 0,
    dueInMs: state === 'failed_retryable' ? row.dueAtMs - nowMs : 0,
    expired: isExpired(row, nowMs),
    createdAtMs: row.createdAtMs,
    completedAtMs: row.completedAtMs,
    expiresAtMs: row.expiresAtMs,
    description: undefined,
    lastErrorCode: row.errorCode,
    outcome: row.outcome,
  }
}

export function journalOf({ work, steps }: ModelRow, nowMs: number): Journal | undefined {
  if (work === undefined) return undefined
  return {
    work,
    steps: steps.map(step => ({
      position: step.position,
      name: step.name,
      kind: step.kind,
      state: step.state,
      result: step.result,
      epoch: step.epoch,
      repeatable: isRepeatable(step, nowMs),
    })),
  }
}

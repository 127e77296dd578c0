/** A key's row as the rules of the simulation see it, and what its times mean. Written from the port, not from a store. */
import type { Row } from '../../src/stores/memory/keys/row.ts'
import type { StepRow } from '../../src/stores/memory/steps/journal.ts'

/** Never changed in place. */
export interface StoredRow extends Row {
  /** Counts grants over nothing or over an expired row: what happened in one generation is not part of the next. */
  readonly generation: number
  readonly hasInput: boolean
  readonly deadlineAtMs: number | undefined
  readonly steps: readonly StepRow[]
}

function isOver({ state, parked, expiresAtMs }: Row, nowMs: number): boolean {
  const finished = state === 'completed' || state === 'failed_retryable'
  return finished && !parked && expiresAtMs <= nowMs
}

export function isGone(row: Row, nowMs: number): boolean {
  if (row.state !== 'completed') return false
  if (row.stripped) return !isOver(row, nowMs)
  return isOver(row, nowMs) && row.tombstoneMs !== undefined && nowMs < row.expiresAtMs + row.tombstoneMs
}

export function isExpired(row: Row, nowMs: number): boolean {
  return isOver(row, nowMs) && !isGone(row, nowMs)
}

export function isOverdue(row: Row, nowMs: number): boolean {
  return row.state === 'in_progress' && row.lockedUntilMs <= nowMs
}

/** Work that was not begun in time. */
export function isTooLate({ deadlineAtMs }: StoredRow, nowMs: number): boolean {
  return deadlineAtMs !== undefined && deadlineAtMs <= nowMs
}

export function isRepeatable({ state, repeatUntilMs }: StepRow, nowMs: number): boolean {
  return state === 'open' && repeatUntilMs !== undefined && nowMs < repeatUntilMs
}

/** An open intent that may not be repeated: nobody can continue. */
export function isStuck({ steps }: StoredRow, nowMs: number): boolean {
  return steps.some(step => step.state === 'open' && !isRepeatable(step, nowMs))
}

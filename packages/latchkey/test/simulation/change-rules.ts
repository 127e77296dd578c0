/**
 * The rules that one change of one row can break. The invariants of a run, by number:
 *
 * I1   one completion of a key, and its business rows once       I8   an effect at most once; "never happened" only if so
 * I2   no write under another claim than the last granted one    I9   the intent is committed before the call, with its key
 * I3   the fence rises by one per grant; who runs was granted    I10  steps are done in order and stay done
 * I4   a completed row does not change                           I11  deleted or granted anew only when expired or free
 * I5   unknown is left by evidence only                          I15  another input under the same key never runs
 * I7   what a client saw as final is stored, byte for byte       I16  after the last fault everything comes to rest
 */
import { transitions } from '../../src/engine/transitions.ts'
import { isExpired, isOverdue, isStuck, type ModelRow } from './model-row.ts'
import type { Change } from './model-tables.ts'

export interface Truth {
  readonly nowMs: number
  /** How often the provider has acted for an effect of this row's present life. */
  executions(effect: string): number
  /** A call to the provider is under way for this row. */
  underWay(): boolean
}

export function checkChange(change: Change, truth: Truth, broken: (rule: string) => void): void {
  const { id, before, after, by, what } = change
  const rose = after !== undefined && after.fence !== before?.fence
  const rule = transitions.find(
    row =>
      row.from === (before?.state ?? 'none') &&
      row.to === (after?.state ?? 'none') &&
      row.by.includes(by) &&
      row.fence === (rose ? 'rises' : 'stays'),
  )
  const operation = (before ?? after)?.identity.operation
  const fail = (text: string) => broken(`${text}: ${what} by ${by} of ${operation} ${id}`)
  if (rule === undefined) fail(`illegal transition ${before?.state} → ${after?.state}`)
  if (after === undefined) {
    if (before !== undefined && !isExpired(before, truth.nowMs)) fail('I11 deleted before its time')
    return
  }
  if (rose) {
    if (after.fence !== (before?.fence ?? 0) + 1) fail('I3 the fence rises by one')
    if (before !== undefined && !mayBeGranted(before, after, truth.nowMs)) fail('I11 granted though it is not free')
    return
  }
  if (before === undefined) return
  if (by === 'owner' && before.claimId !== after.claimId) fail('I2 a write of another claim')
  if (before.state === 'completed') fail('I4 a completed row changes')
  checkSteps(before, after, fail)
  checkEvidence(change, truth, fail)
}

type Fail = (text: string) => void

function mayBeGranted(before: ModelRow, after: ModelRow, nowMs: number): boolean {
  if (isExpired(before, nowMs)) return after.steps.length === 0
  if (before.parked || Buffer.compare(before.fingerprint, after.fingerprint) !== 0) return false
  if (before.state === 'failed_retryable') return before.dueAtMs <= nowMs
  return isOverdue(before, nowMs) && before.recovery !== 'hold' && !isStuck(before, nowMs)
}

function checkSteps(before: ModelRow, after: ModelRow, fail: Fail): void {
  for (const step of before.steps) {
    const now = after.steps.find(other => other.position === step.position)
    if (step.state === 'done' && (now?.state !== 'done' || now.result !== step.result)) fail('I10 a done step changes')
    if (now !== undefined && now.epoch < step.epoch) fail('I10 an epoch falls')
  }
  const added = after.steps.find(step => !before.steps.some(other => other.position === step.position))
  const ahead = after.steps.filter(step => step.state === 'done' && step.position < (added?.position ?? 0))
  if (added !== undefined && ahead.length < added.position) fail(`I10 ${added.name} before what is ahead of it is done`)
  const byOwner = after.state === 'completed' && after.answeredBy === 'owner'
  if (byOwner && after.steps.some(step => step.state !== 'done')) fail('I10 completed with a step that is not done')
}

/** What is said not to have happened did not happen, and cannot happen any more. */
function checkEvidence({ before, after, by }: Change, truth: Truth, fail: Fail): void {
  if (before === undefined || after === undefined) return
  for (const step of before.steps) {
    const denied =
      step.state === 'open' && after.steps.find(other => other.position === step.position)?.state === 'again'
    if (denied && truth.executions(step.name) > 0) fail(`I8 ${step.name} is said not to have happened`)
    if (denied && truth.underWay()) fail(`I8 ${step.name} is said not to have happened, and is under way`)
  }
  if (before.state !== 'unknown' || after.state === 'unknown') return
  if (by !== 'late owner' && by !== 'operator') fail('I5 unknown is left without evidence')
}

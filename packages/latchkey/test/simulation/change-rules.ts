/**
 * The rules that one change of one row can break. The invariants of a run, by number:
 *
 * I1   one completion of a key, and its business rows once       I8   an effect at most once; "never happened" only if so
 * I2   no write under another claim than the last granted one    I9   the intent is committed before the call, with its key
 * I3   the fence rises by one per grant; who runs was granted    I10  steps are done in order and stay done
 * I4   a completed row does not change                           I11  deleted or granted anew only when expired or free
 * I5   unknown is left by evidence only, and evidence is true    I14  deferred work ends once; past its deadline it never runs
 * I6   an epoch rises by one, by negative evidence, in time      I15  another input under the same key never runs
 * I7   what a client saw as final is stored, byte for byte       I16  after the last fault everything comes to rest, and
 *                                                                     what is unknown and can be asked about is settled
 * I18  a forged message changes nothing, a recorded one is taken once
 */
import { transitions } from '../../src/engine/rules/transitions.ts'
import type { AppliedEvidence, Change } from './database.ts'
import { quarantineMs } from './provider.ts'
import { isExpired, isGone, isOverdue, isStuck, type StoredRow } from './stored-row.ts'

export interface Truth {
  readonly nowMs: number
  /** How often the provider has acted for an effect of this generation of the row. */
  executions(effect: string): number
  /** What it answered, refusals included. */
  results(effect: string): readonly string[]
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
  const operation = (before ?? after)?.operation
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
  if (before.state === 'completed' && !isStripped(before, after, truth.nowMs)) fail('I4 a completed row changes')
  checkSteps(before, after, fail)
  checkEpochs(change, fail)
  checkEvidence(change, truth, fail)
}

type Fail = (text: string) => void

function mayBeGranted(before: StoredRow, after: StoredRow, nowMs: number): boolean {
  if (isGone(before, nowMs)) return false
  if (isExpired(before, nowMs)) return after.steps.length === 0
  if (before.parked || Buffer.compare(before.fingerprint, after.fingerprint) !== 0) return false
  if (before.state === 'failed_retryable' || before.state === 'pending') return before.dueAtMs <= nowMs
  return isOverdue(before, nowMs) && before.recovery !== 'hold' && !isStuck(before, nowMs)
}

function checkSteps(before: StoredRow, after: StoredRow, fail: Fail): void {
  for (const step of before.steps) {
    const now = after.steps.find(other => other.position === step.position)
    if (step.state === 'done' && (now?.state !== 'done' || now.value !== step.value)) fail('I10 a done step changes')
    if (now !== undefined && now.epoch < step.epoch) fail('I10 an epoch falls')
  }
  const added = after.steps.find(step => !before.steps.some(other => other.position === step.position))
  const ahead = after.steps.filter(step => step.state === 'done' && step.position < (added?.position ?? 0))
  if (added !== undefined && ahead.length < added.position) fail(`I10 ${added.name} before what is ahead of it is done`)
  const byOwner = after.state === 'completed' && after.answeredBy === 'owner'
  if (byOwner && after.steps.some(step => step.state !== 'done')) fail('I10 completed with a step that is not done')
}

/** Nothing of it is left but that it was. */
function isStripped(before: StoredRow, after: StoredRow, nowMs: number): boolean {
  return isGone(before, nowMs) && !before.stripped && after.stripped && after.outcome === undefined
}

/** With every piece of evidence that it never happened, and with nothing else. Its own owner may use the key again that it never used. */
function checkEpochs({ before, after, by, evidence }: Change, fail: Fail): void {
  const denied = evidence?.verdict.kind === 'never-happened' && by !== 'late owner'
  for (const step of before?.steps ?? []) {
    const epoch = after?.steps.find(other => other.position === step.position)?.epoch
    const expected = step.epoch + (denied && step.state === 'open' ? 1 : 0)
    if (epoch !== undefined && epoch !== expected) {
      fail(
        `I6 the epoch of ${step.name} is ${epoch} after ${step.epoch}, ${evidence?.verdict.kind ?? 'without evidence'}`,
      )
    }
  }
}

/** What evidence denies did not happen, and cannot happen any more. */
function checkEvidence({ before, after, by, evidence }: Change, truth: Truth, fail: Fail): void {
  if (before === undefined || after === undefined) return
  for (const step of before.steps) {
    const denied =
      step.state === 'open' && after.steps.find(other => other.position === step.position)?.state === 'again'
    if (denied && truth.executions(step.name) > 0) fail(`I8 ${step.name} is denied, and it happened`)
    if (denied && truth.underWay()) fail(`I8 ${step.name} is denied while it is under way`)
  }
  if (before.state !== 'unknown' && evidence !== undefined)
    fail(`I5 evidence is applied to a row that is ${before.state}`)
  if (before.state !== 'unknown' || after.state === 'unknown') return
  if (evidence === undefined) return fail('I5 unknown is left without evidence')
  const negative = evidence.verdict.kind === 'never-happened'
  const early = evidence.atMs < (before.doubt?.sinceMs ?? 0) + quarantineMs
  if (by === 'reconciler' && negative && early) fail('I5 negative evidence inside the quarantine')
  checkTruth(before, evidence, { truth, fail })
}

/** Evidence agrees with what the provider did, and its result is the provider's. */
function checkTruth(
  before: StoredRow,
  { verdict }: AppliedEvidence,
  { truth, fail }: { truth: Truth; fail: Fail },
): void {
  const effect = before.steps.find(step => step.state === 'open')?.name ?? 'work'
  if (verdict.kind === 'never-happened') {
    if (truth.executions(effect) > 0) fail(`I8 ${effect} is denied, and it happened`)
    if (truth.underWay()) fail(`I8 ${effect} is denied while it is under way`)
    return
  }
  const results = truth.results(effect)
  if (results.length === 0) fail(`I5 ${effect} is claimed to have ${verdict.kind}`)
  const isKnown = 'value' in verdict && results.some(result => JSON.stringify(result) === verdict.value)
  if ('value' in verdict && !isKnown) fail(`I5 ${effect} has a result that the provider did not give: ${verdict.value}`)
}

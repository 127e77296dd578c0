/** One effect: its intent is committed, the call gets the downstream key and a deadline, its value is recorded. */
import { checkOptions } from '../../ports/check-options.ts'
import { sleep } from '../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError, misconfigured } from '../../ports/errors.ts'
import type { Intent } from '../../ports/steps.ts'
import type { OwnerResult } from '../../ports/store.ts'
import { type LateResult, storeLateResult, submitLateResult } from './late-result.ts'
import { holdLease } from '../run/lease.ts'
import { downstreamKey } from '../execution.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import { untilStored } from '../store/call.ts'
import { codeOf } from '../rules/judge.ts'
import { boundedJson, fromJson } from './json.ts'
import { classifyNetworkFailure, type NetworkFailure } from '../rules/network-failure.ts'
import { effectChecks } from '../option-checks.ts'
import type { EffectCall, EffectOptions } from './phased-execution.ts'
import { halt, nextStep, type StepRun, storeUnavailable, whileRunning } from './step-run.ts'

/** Between the call's deadline and the end of the lease: time to write the value. */
const leaseMarginMs = 5_000
/** A provider that lost one answer usually gives the next: two more tries while the client waits. */
const repeatAfterMs = [200, 1_000]
/** Then a pause for a provider in trouble, before a worker or a retry resumes. */
const resumeAfterMs = 5_000
/** The lease of a row that is left to a worker: it must have one, and this one ends at once. */
const resumeSoonMs = 1
/** Memory that a result takes beside its text. */
const entryBytes = 1_024

export interface EffectRequest {
  readonly name: string
  readonly options: EffectOptions
  readonly call: (effect: EffectCall) => Promise<unknown>
}

export async function runEffect<Tx>(run: StepRun<Tx>, { name, options, call }: EffectRequest): Promise<unknown> {
  checkEffect(run, name, options)
  checkName(run, name)
  const { position, known } = nextStep(run, 'effect', name)
  if (known?.state === 'done') return fromJson(known.value)
  if (known?.state === 'open' && !known.repeatable) {
    const cause = new LatchkeyError(
      'outcome-unknown',
      `${run.operation}: ${name} was begun before, and may not be repeated`,
    )
    return halt(run, { kind: 'unknown', errorCode: 'interrupted', cause })
  }
  const epoch = known?.epoch ?? 0
  const leaseMs = Math.max(run.leaseMs, options.timeoutMs + leaseMarginMs)
  const key = downstreamKey(run.claim.id, name, 'uuid', epoch)
  const intent = { position, name, epoch, key, windowMs: options.dedup?.windowMs }
  const effect = { intent, leaseMs, options, call, doubtful: known?.state === 'open' }
  return whileRunning(run, name, async () => {
    const value = await callUntilClear(run, effect)
    return record(run, { intent, value, leaseMs })
  })
}

/** The downstream key is derived from the name: under one name the provider would take the second effect for the first. */
function checkName<Tx>({ operation, effects }: StepRun<Tx>, name: string): void {
  if (!effects.has(name)) return void effects.add(name)
  throw misconfigured(
    `${operation}: the effect ${name} is called twice, and both would have one downstream key. Put what tells them apart into the name`,
  )
}

function checkEffect<Tx>({ operation }: StepRun<Tx>, name: string, options: EffectOptions): void {
  const what = `${operation}: the effect ${name}`
  checkOptions(what, options, effectChecks)
  const { timeoutMs, dedup } = options
  if (timeoutMs === undefined) throw misconfigured(`${what} needs timeoutMs: the longest that the call may take`)
  if (dedup !== undefined && dedup.windowMs === undefined)
    throw misconfigured(`${what}: dedup needs windowMs: how long the provider recognises the key`)
}

/**
 * A call without an answer may have happened. Where the provider recognises our key it is repeated, a few times right
 * here; then a worker or a retry resumes the row, inside the provider's window. Elsewhere it is unknown at once.
 */
async function callUntilClear<Tx>(run: StepRun<Tx>, effect: PendingEffect): Promise<unknown> {
  const { clock } = run.core
  const { dedup, timeoutMs } = effect.options
  const openedAtMs = clock.monotonicMs()
  let { doubtful } = effect
  for (let tries = 0; ; tries++) {
    await openIntent(run, { ...effect, doubtful })
    faultPoint('effect:before-call')
    const called = await callWithin(run, effect)
    faultPoint('effect:after-call')
    if (called.kind === 'value') return called.value
    const { cause } = called
    // Proven for this try only: an earlier one without an answer may have happened.
    if (called.kind === 'never-left' && !doubtful) halt(run, { kind: 'retryable', errorCode: codeOf(cause), cause })
    doubtful = true
    if (dedup === undefined) return halt(run, { kind: 'unknown', errorCode: codeOf(cause), cause })
    const pauseMs = repeatAfterMs[tries]
    // Of an intent that was open before this run, only the store knows how much of its window is left.
    const inside = !effect.doubtful && clock.monotonicMs() + (pauseMs ?? 0) + timeoutMs < openedAtMs + dedup.windowMs
    if (pauseMs === undefined || !inside) return leaveToWorkers(run, cause)
    await sleep(clock, pauseMs * (0.75 + clock.random() / 2))
  }
}

/** Resumed soon, not when the whole lease has passed. A store that fails here only makes it later. */
async function leaveToWorkers<Tx>(run: StepRun<Tx>, cause: unknown): Promise<never> {
  const { calls, store } = run.core
  await calls.call('heartbeat', () => store.heartbeat(run.claim, resumeAfterMs)).catch(() => undefined)
  return halt(run, { kind: 'abandon', cause })
}

async function openIntent<Tx>(run: StepRun<Tx>, { intent, leaseMs, doubtful }: PendingEffect): Promise<void> {
  try {
    const opened = await run.core.calls.call('intent', () => run.steps.openIntent(run.claim, intent, leaseMs))
    if (opened === 'claim-lost') halt(run, { kind: 'claim-lost' })
  } catch (cause) {
    if (run.halted !== undefined) throw run.halted
    // Committed or not, this call was not made. That proves nothing about an earlier one: its intent stays open.
    halt(run, { kind: doubtful ? 'abandon' : 'retryable', errorCode: storeUnavailable, cause })
  }
}

interface PendingEffect {
  readonly intent: Intent
  readonly leaseMs: number
  readonly options: EffectOptions
  readonly call: (effect: EffectCall) => Promise<unknown>
  /** An earlier try has no answer. */
  readonly doubtful: boolean
}

type CallResult =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: NetworkFailure; readonly cause: unknown }

async function callWithin<Tx>(run: StepRun<Tx>, { options, call, intent }: PendingEffect): Promise<CallResult> {
  const deadline = new AbortController()
  const overdue = new LatchkeyError('outcome-unknown', `no answer within ${options.timeoutMs} ms`)
  const late = new Promise<never>((_, reject) => {
    deadline.signal.addEventListener('abort', () => reject(overdue), { once: true })
  })
  // The race may be over when it fires.
  late.catch(() => {})
  const cancel = run.core.clock.after(options.timeoutMs, () => deadline.abort(overdue))
  try {
    const given = { id: run.claim.id, key: intent.key, signal: deadline.signal }
    return { kind: 'value', value: await Promise.race([call(given), late]) }
  } catch (cause) {
    return { kind: classify(options, cause), cause }
  } finally {
    cancel()
  }
}

function classify({ classify: own }: EffectOptions, error: unknown): NetworkFailure {
  if (isLatchkeyError(error, 'not-executed')) return 'never-left'
  if (isLatchkeyError(error, 'outcome-unknown')) return 'ambiguous'
  try {
    return own?.(error) ?? classifyNetworkFailure(error)
  } catch {
    return 'ambiguous'
  }
}

interface EffectValue {
  readonly intent: Intent
  readonly value: unknown
  readonly leaseMs: number
}

async function record<Tx>(run: StepRun<Tx>, { intent, value, leaseMs }: EffectValue): Promise<unknown> {
  const { position, name } = intent
  const result = resultText(run, name, value)
  const written = await recordUntilStored(run, { intent, result, leaseMs })
  if (written === 'claim-lost') {
    await storeLateResult(run, { intent, result })
    return halt(run, { kind: 'claim-lost' })
  }
  run.doubts.delete(position)
  return fromJson(result)
}

/** It happened, and its value cannot be stored: the rest must not run on a guess. */
function resultText<Tx>(run: StepRun<Tx>, name: string, value: unknown): string | undefined {
  try {
    return boundedJson(`${run.operation}: the value of the effect ${name}`, value)
  } catch (cause) {
    return halt(run, { kind: 'unknown', errorCode: 'result-not-kept', cause })
  }
}

interface RecordedValue extends LateResult {
  readonly intent: Intent
  readonly leaseMs: number
}

async function recordUntilStored<Tx>(run: StepRun<Tx>, recorded: RecordedValue): Promise<OwnerResult> {
  const { core, claim, steps } = run
  const { intent, result, leaseMs } = recorded
  const write = () => steps.recordResult(claim, { position: intent.position, value: result }, leaseMs)
  try {
    return await untilStored(core.clock, () => core.calls.call('result', write))
  } catch (cause) {
    recordLater(run, recorded)
    // Until then the intent is open: should this process die, the row is resumed inside the provider's window, or becomes unknown.
    return halt(run, { kind: 'abandon', cause })
  }
}

/** The rest no longer runs here, so a worker or a retry resumes the row as soon as the value is recorded. */
function recordLater<Tx>(run: StepRun<Tx>, { intent, result, leaseMs }: RecordedValue): void {
  const { core, claim, steps, operation, holdMsMax } = run
  const lease = holdLease(core, { claim, leaseMs, holdMsMax, operation, claimedAtMs: core.clock.monotonicMs() })
  const write = async () => {
    const written = await steps.recordResult(claim, { position: intent.position, value: result }, resumeSoonMs)
    if (written === 'claim-lost') await submitLateResult(run, { intent, result })
    return written
  }
  const bytes = entryBytes + (result?.length ?? 0)
  if (!core.unstored.keep({ claim, operation, lease, holdMsMax, write, bytes })) lease.end()
}

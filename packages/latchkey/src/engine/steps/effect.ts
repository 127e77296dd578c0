/** One effect: intent committed, the call with the downstream key and a deadline, result recorded. */
import { checkOptions } from '../../ports/check-options.ts'
import { sleep } from '../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError, misconfigured } from '../../ports/errors.ts'
import type { Intent } from '../../ports/steps.ts'
import type { OwnerResult } from '../../ports/store.ts'
import { keepLateResult, type LateResult, sayLateResult } from './late-result.ts'
import { holdLease } from '../run/lease.ts'
import { downstreamKey } from '../execution.ts'
import { faultPoint } from '../store/call.ts'
import { storeUnavailable } from './halt.ts'
import { codeOf } from '../rules/judge.ts'
import { boundedJson, fromJson } from './json.ts'
import { classifyNetworkFailure, type NetworkFailure } from '../rules/network-failure.ts'
import { effectChecks } from '../option-checks.ts'
import {
  type EffectCall,
  type EffectOptions,
  halt,
  nextStep,
  type PhasedRun,
  whileRunning,
} from './phased-execution.ts'

/** Between the call's deadline and the lease's end: room for the result to be written. */
const leaseMarginMs = 5_000
/** A provider that lost one answer usually gives the next: two more tries while the client waits. */
const repeatAfterMs = [200, 1_000]
/** Then a pause for a provider in trouble, before a worker or a retry goes on. */
const resumeAfterMs = 5_000
/** The call happened: its result is worth a few seconds of a store that hiccups. */
const recordForMs = 5_000
const firstPauseMs = 50
/** Of a lease that is only there because a row in progress has one. */
const resumeSoonMs = 1
/** What a result takes of memory beside its text. */
const entryBytes = 1_024

export interface EffectRequest {
  readonly name: string
  readonly options: EffectOptions
  readonly call: (effect: EffectCall) => Promise<unknown>
}

export async function runEffect<Tx>(run: PhasedRun<Tx>, { name, options, call }: EffectRequest): Promise<unknown> {
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
  const calling = { intent, leaseMs, options, call, doubtful: known?.state === 'open' }
  return whileRunning(run, name, async () => {
    const value = await callUntilClear(run, calling)
    return record(run, { intent, value, leaseMs })
  })
}

/** The downstream key is made of the name: under one name the provider would take the second effect for the first. */
function checkName<Tx>({ operation, effects }: PhasedRun<Tx>, name: string): void {
  if (!effects.has(name)) return void effects.add(name)
  throw misconfigured(
    `${operation}: the effect ${name} is asked for twice, and both would have one downstream key. Put what tells them apart into the name`,
  )
}

function checkEffect<Tx>({ operation }: PhasedRun<Tx>, name: string, options: EffectOptions): void {
  const what = `${operation}: the effect ${name}`
  checkOptions(what, options, effectChecks)
  const { timeoutMs, dedup } = options
  if (timeoutMs === undefined) throw misconfigured(`${what} needs timeoutMs: the longest that the call may take`)
  if (dedup !== undefined && dedup.windowMs === undefined)
    throw misconfigured(`${what}: dedup needs windowMs: how long the provider recognises the key`)
}

/**
 * A call without an answer may have happened. Where the provider recognises our key it is asked again, a few times right
 * here; then the row is left to whoever resumes it, inside the provider's window. Elsewhere it is unknown at once.
 */
async function callUntilClear<Tx>(run: PhasedRun<Tx>, calling: Calling): Promise<unknown> {
  const { clock } = run.core
  const { dedup, timeoutMs } = calling.options
  const openedAtMs = clock.monotonicMs()
  let { doubtful } = calling
  for (let tries = 0; ; tries++) {
    await openIntent(run, { ...calling, doubtful })
    faultPoint('effect:before-call')
    const called = await callWithin(run, calling)
    faultPoint('effect:after-call')
    if (called.kind === 'value') return called.value
    const { cause } = called
    // Proven for this try only: an earlier one without an answer may have happened.
    if (called.kind === 'never-left' && !doubtful) halt(run, { kind: 'retryable', errorCode: codeOf(cause), cause })
    doubtful = true
    if (dedup === undefined) return halt(run, { kind: 'unknown', errorCode: codeOf(cause), cause })
    const pauseMs = repeatAfterMs[tries]
    // Of an intent that was open before this run, only the store knows how much of its window is left.
    const inside = !calling.doubtful && clock.monotonicMs() + (pauseMs ?? 0) + timeoutMs < openedAtMs + dedup.windowMs
    if (pauseMs === undefined || !inside) return leaveToOthers(run, cause)
    await sleep(clock, pauseMs * (0.75 + clock.random() / 2))
  }
}

/** Resumed soon, not when the whole lease has passed. A store that fails here only makes it later. */
async function leaveToOthers<Tx>(run: PhasedRun<Tx>, cause: unknown): Promise<never> {
  const { calls, store } = run.core
  await calls.call('heartbeat', () => store.heartbeat(run.claim, resumeAfterMs)).catch(() => undefined)
  return halt(run, { kind: 'abandon', cause })
}

async function openIntent<Tx>(run: PhasedRun<Tx>, { intent, leaseMs, doubtful }: Calling): Promise<void> {
  try {
    const opened = await run.core.calls.call('intent', () => run.steps.openIntent(run.claim, intent, leaseMs))
    if (opened === 'claim-lost') halt(run, { kind: 'claim-lost' })
  } catch (cause) {
    if (run.halted !== undefined) throw run.halted
    // Committed or not, this call was not made. Of an earlier one that is no proof: its intent stays open, and its window goes on.
    halt(run, { kind: doubtful ? 'abandon' : 'retryable', errorCode: storeUnavailable, cause })
  }
}

interface Calling {
  readonly intent: Intent
  readonly leaseMs: number
  readonly options: EffectOptions
  readonly call: (effect: EffectCall) => Promise<unknown>
  /** An earlier try has no answer. */
  readonly doubtful: boolean
}

type Called =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: NetworkFailure; readonly cause: unknown }

async function callWithin<Tx>(run: PhasedRun<Tx>, { options, call, intent }: Calling): Promise<Called> {
  const deadline = new AbortController()
  const overdue = new LatchkeyError('outcome-unknown', `no answer within ${options.timeoutMs} ms`)
  const late = new Promise<never>((_, reject) => {
    deadline.signal.addEventListener('abort', () => reject(overdue), { once: true })
  })
  // Nobody may be listening any more when it fires.
  late.catch(() => {})
  const cancel = run.core.clock.after(options.timeoutMs, () => deadline.abort(overdue))
  try {
    const effect = { id: run.claim.id, key: intent.key, signal: deadline.signal }
    return { kind: 'value', value: await Promise.race([call(effect), late]) }
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

interface Recording {
  readonly intent: Intent
  readonly value: unknown
  readonly leaseMs: number
}

async function record<Tx>(run: PhasedRun<Tx>, { intent, value, leaseMs }: Recording): Promise<unknown> {
  const { position, name } = intent
  const result = resultText(run, name, value)
  const written = await recordUntilStored(run, { intent, result, leaseMs })
  if (written === 'claim-lost') {
    await keepLateResult(run, { intent, result })
    return halt(run, { kind: 'claim-lost' })
  }
  run.doubts.delete(position)
  return fromJson(result)
}

/** It happened, and its value cannot be kept: nobody may run the rest on a guess. */
function resultText<Tx>(run: PhasedRun<Tx>, name: string, value: unknown): string | undefined {
  try {
    return boundedJson(`${run.operation}: the value of the effect ${name}`, value)
  } catch (cause) {
    return halt(run, { kind: 'unknown', errorCode: 'result-not-kept', cause })
  }
}

interface Recorded extends LateResult {
  readonly intent: Intent
  readonly leaseMs: number
}

async function recordUntilStored<Tx>(run: PhasedRun<Tx>, recorded: Recorded): Promise<OwnerResult> {
  const { core, claim, steps } = run
  const { intent, result, leaseMs } = recorded
  const write = () => steps.recordResult(claim, { position: intent.position, value: result }, leaseMs)
  const until = core.clock.monotonicMs() + recordForMs
  for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
    try {
      return await core.calls.call('result', write)
    } catch (cause) {
      if (core.clock.monotonicMs() + pauseMs <= until) {
        await sleep(core.clock, pauseMs)
        continue
      }
      recordLater(run, recorded)
      // Until then the intent is open: should this process die, the row is resumed inside the provider's window, or becomes unknown.
      return halt(run, { kind: 'abandon', cause })
    }
  }
}

/** Nobody runs the rest here any more, so the row is left, as soon as the result is recorded, to whoever resumes it. */
function recordLater<Tx>(run: PhasedRun<Tx>, { intent, result, leaseMs }: Recorded): void {
  const { core, claim, steps, operation, holdMsMax } = run
  const lease = holdLease(core, { claim, leaseMs, holdMsMax, operation, claimedAtMs: core.clock.monotonicMs() })
  const write = async () => {
    const written = await steps.recordResult(claim, { position: intent.position, value: result }, resumeSoonMs)
    if (written === 'claim-lost') await sayLateResult(run, { intent, result })
    return written
  }
  const bytes = entryBytes + (result?.length ?? 0)
  if (!core.unstored.keep({ claim, operation, lease, holdMsMax, write, bytes })) lease.end()
}

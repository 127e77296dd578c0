/** Runs the definition of a granted row from its journal, and writes its end. */
import { LatchkeyError, unreachable } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { Journal, Steps } from '../../ports/steps.ts'
import { type Answer, type Attempt, inProgress, outcomeUnknown, refused, unavailable, type Work } from '../answer.ts'
import { attemptOf } from '../execution.ts'
import type { Settings } from '../options.ts'
import { type ReferenceWriter, referencesOf } from '../run/references.ts'
import { judge } from '../rules/judge.ts'
import type { Granted } from '../run/claim.ts'
import { answerAfterLoss, finishAs, type OwnedRow } from '../run/finish.ts'
import { workInSpan } from '../run/trace.ts'
import type { Core } from '../runtime.ts'
import { runEffect } from './effect.ts'
import { fromJson } from './json.ts'
import { type PhaseParts, refusePhase, runPhase } from './phase.ts'
import type { EffectsExecution, PhasedExecution } from './phased-execution.ts'
import { Halt, type HaltReason, type StepRun, storeUnavailable } from './step-run.ts'

/** The code of one version of a phased operation. Outside its steps it runs again on every resume: no effect, clock or randomness there. */
export type Definition<Tx, Input> = (execution: PhasedExecution<Tx>, input: Input) => Promise<Outcome>

/** As `Definition`, of an operation that is declared with `steps: 'effects'`. */
export type EffectsDefinition<Input> = (execution: EffectsExecution, input: Input) => Promise<Outcome>

/** One version of an operation. */
export interface DeclaredVersion<Tx> {
  readonly definition: Definition<Tx, never>
  /** Undefined: this version is declared with `steps: 'effects'`. */
  readonly phases: PhaseParts<Tx> | undefined
}

/** Of all rows of one operation. */
export interface DefinitionPlan<Tx> {
  readonly steps: Steps
  /** Every version that is declared in this process, so that rows of older ones can drain. */
  readonly definitions: ReadonlyMap<number, DeclaredVersion<Tx>>
  /** The outcome of deferred work that was not begun in time. */
  readonly overdue: Outcome
}

/** After so many deaths of its owner a row is poison: it is parked until a person has examined it, and kills no more processes. */
const crashesMax = 5
/** A failing step is tried again after one second, then two, four … up to five minutes. */
const firstRetryMs = 1_000
const retryMsMax = 300_000

interface GrantedDefinition<Tx> {
  /** `work`: the input of a new row as JSON text; absent from a worker, which can resume but not begin. */
  readonly granted: Granted<string | undefined>
  readonly plan: DefinitionPlan<Tx>
}

export async function runGranted<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { granted, plan }: GrantedDefinition<Tx>,
): Promise<Answer> {
  const { won, request, claimedAtMs } = granted
  const owned = ownedRow(settings, granted)
  try {
    // A claim found again after a lost reply comes without its journal.
    const journal = won.journal ?? (await core.calls.call('read journal', () => plan.steps.readJournal(won.claim.id)))
    if (journal === undefined) return await giveBack(core, owned)
    // Not in doubt: its intents stay open while it is parked, for a version that can read them.
    if (journal.steps === undefined) return await park(core, owned, { cause: 'journal-unreadable', inDoubt: false })
    if (isOverdue(journal)) return await endOverdue(core, owned, plan.overdue)
    const declared = plan.definitions.get(journal.work.version)
    const inDoubt = journal.steps.some(({ state }) => state === 'open')
    if (won.crashes >= crashesMax) return await park(core, owned, { cause: 'poison', inDoubt })
    if (declared === undefined) return await park(core, owned, { cause: 'definition-changed', inDoubt })
    const run: StepRun<Tx> = {
      core,
      steps: plan.steps,
      claim: won.claim,
      operation: request.identity.operation,
      leaseMs: settings.leaseMs,
      holdMsMax: settings.holdMsMax,
      retentionMs: settings.retentionMs,
      journal,
      position: 0,
      running: undefined,
      doubts: new Set(journal.steps.filter(({ state }) => state === 'open').map(({ position }) => position)),
      effects: new Set(),
      halted: undefined,
    }
    const references = referencesOf(core, run.operation, won.claim)
    const work: Work<PhasedExecution<Tx>> = execution => attemptDefinition(run, declared.definition, execution)
    const attempt = await attemptOf(
      request,
      workInSpan(core.telemetry, request, work),
      executionOf(run, granted, { parts: declared.phases, references }),
    )
    // What the definition did not wait for is written while the row is still its own.
    if (references.written !== undefined) await references.written
    const tookMs = core.clock.monotonicMs() - claimedAtMs
    core.durations.add(run.operation, tookMs)
    core.telemetry.observe('execution.duration', tookMs, { operation: run.operation })
    if (run.halted === undefined) return await finishEnded(core, owned, { attempt, tries: won.attempt, run })
    return await finishHalted(core, owned, {
      reason: run.halted.reason,
      tries: won.attempt,
      inDoubt: run.doubts.size > 0,
    })
  } catch (cause) {
    // The journal could not be read: nothing ran yet, and the row is resumed when its lease has ended.
    return unavailable(cause, true)
  } finally {
    core.waiters.wake(request.identity.id)
  }
}

/** For work whose definition is not declared in this process, which can end it and not run it. */
export async function endUndeclared<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { granted, overdue }: { granted: Granted<undefined>; overdue: Outcome },
): Promise<Answer> {
  const { won, request } = granted
  const owned = ownedRow(settings, granted)
  try {
    // If it was begun or queued anew since it was listed, it waits for a process that declares it.
    const isOver = won.journal?.steps !== undefined && isOverdue(won.journal)
    return await (isOver ? endOverdue(core, owned, overdue) : giveBack(core, owned))
  } finally {
    core.waiters.wake(request.identity.id)
  }
}

function ownedRow<C>(settings: Settings<C>, { won: { claim }, request }: Granted<unknown>): OwnedRow<C> {
  // Each step's commit renews the lease, so what is left counts from the last of them; a store that fails is retried briefly.
  return { claim, request, settings, lasts: { leftMs: () => settings.leaseMs }, lease: undefined }
}

function isOverdue({ overdue, steps }: Journal): boolean {
  return overdue && steps.length === 0
}

async function attemptDefinition<Tx>(
  run: StepRun<Tx>,
  definition: Definition<Tx, never>,
  execution: PhasedExecution<Tx>,
): Promise<Attempt> {
  try {
    // Stored by this operation's own `input`, and checked by the definition's version.
    const input = fromJson(run.journal.work.input) as never
    return { kind: 'answered', outcome: await definition(execution, input) }
  } catch (error) {
    return { kind: 'threw', error: error instanceof Halt ? error.cause : error }
  }
}

function executionOf<Tx>(
  run: StepRun<Tx>,
  { won, request }: Granted<unknown>,
  { parts, references }: { readonly parts: PhaseParts<Tx> | undefined; readonly references: ReferenceWriter },
): PhasedExecution<Tx> {
  const { id, scope, operation } = request.identity
  return {
    id,
    scope,
    operation,
    attempt: won.attempt,
    fence: won.claim.fence,
    recoveryPoint: run.journal.steps.findLast(step => step.state === 'done')?.name,
    // A step's value went through JSON as the definition's own T.
    phase: async (name, work) =>
      (parts === undefined ? refusePhase(run, 'phase') : await runPhase(run, { parts, name, work })) as never,
    effect: async (name, options, call) => (await runEffect(run, { name, options, call })) as never,
    reference: text => references.add(text),
    outbox: {
      append: async (tx, message) =>
        parts === undefined ? refusePhase(run, 'outbox') : parts.append(tx, message, scope),
    },
  }
}

interface EndedDefinition<Tx> {
  readonly attempt: Attempt
  readonly tries: number
  readonly run: StepRun<Tx>
}

/** The definition returned its outcome, or failed by itself. Its finished steps are stored, so a failure may be run again. */
async function finishEnded<Tx, C>(
  core: Core<Tx>,
  owned: OwnedRow<C>,
  { attempt, tries, run }: EndedDefinition<Tx>,
): Promise<Answer> {
  const judgement = judge(attempt, { ...owned.settings, onFailure: 'resume' })
  const later = judgement.kind === 'retryable' ? { ...judgement, dueInMs: retryInMs(tries) } : judgement
  if (run.doubts.size === 0) return finishAs(core, owned, { attempt, judgement: later })
  // It ended without returning to an effect that may have happened: an outcome would deny the effect, a failure would forget it.
  if (judgement.kind === 'keep') return park(core, owned, { cause: 'definition-changed', inDoubt: true })
  await core.calls.call('heartbeat', () => core.store.heartbeat(owned.claim, retryInMs(tries))).catch(() => undefined)
  return { kind: 'executed', attempt, stored: 'not-stored' }
}

async function finishHalted<Tx, C>(
  core: Core<Tx>,
  owned: OwnedRow<C>,
  { reason, tries, inDoubt }: { reason: HaltReason; tries: number; inDoubt: boolean },
): Promise<Answer> {
  switch (reason.kind) {
    case 'claim-lost':
      return answerAfterLoss(core, owned)
    case 'park':
      return park(core, owned, { cause: reason.cause, inDoubt })
    case 'abandon':
      return outcomeUnknown(reason.cause)
    case 'unknown':
    case 'retryable': {
      const attempt: Attempt = { kind: 'threw', error: reason.cause }
      const { kind, errorCode } = reason
      const answer = await finishAs(core, owned, {
        attempt,
        judgement: { kind, errorCode, dueInMs: retryInMs(tries) },
      })
      // The definition did nothing wrong: its finished steps are stored, and a worker or a retry resumes it.
      const byStore = errorCode === storeUnavailable && answer.kind === 'executed'
      return byStore ? unavailable(reason.cause, true) : answer
    }
    default:
      return unreachable(reason)
  }
}

interface ParkReason {
  readonly cause: string
  /** An intent is open: such a row is `unknown`, which never expires, and its evidence has a place. */
  readonly inDoubt: boolean
}

async function park<Tx, C>(core: Core<Tx>, owned: OwnedRow<C>, { cause, inDoubt }: ParkReason): Promise<Answer> {
  const { claim, request } = owned
  const { operation, id } = request.identity
  if (inDoubt) {
    const attempt: Attempt = {
      kind: 'threw',
      error: new LatchkeyError('outcome-unknown', `${operation}: ${cause}, with an effect in doubt`),
    }
    return finishAs(core, owned, { attempt, judgement: { kind: 'unknown', errorCode: cause } })
  }
  core.telemetry.count('parked', { operation, identity: id, detail: cause })
  // A store that fails here leaves the claim; the next owner finds the same reason.
  await core.calls.call('park', () => core.store.park(claim, cause)).catch(() => undefined)
  return refused('parked')
}

/** Not begun before its deadline: its client no longer expects it, and every retry gets this outcome. */
function endOverdue<Tx, C>(core: Core<Tx>, owned: OwnedRow<C>, overdue: Outcome): Promise<Answer> {
  const outcome = { ...overdue, version: owned.settings.outcomeVersion }
  return finishAs(core, owned, { attempt: { kind: 'answered', outcome }, judgement: { kind: 'keep', outcome } })
}

/** Nothing of it ran here. Such as a row that expired after a worker found it: there is no input to run it with. */
async function giveBack<Tx, C>(core: Core<Tx>, { claim: { id, claimId } }: OwnedRow<C>): Promise<Answer> {
  await core.calls.call('release', () => core.store.release(id, claimId)).catch(() => undefined)
  return inProgress()
}

function retryInMs(tries: number): number {
  return Math.min(firstRetryMs * 2 ** Math.max(0, tries - 1), retryMsMax)
}

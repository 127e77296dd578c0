/** Phased: claimed, run step by step from its journal, completed with the outcome that the definition returns. */
import { LatchkeyError, unreachable } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { Steps } from '../../ports/steps.ts'
import type { Transactor } from '../../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused, unavailable } from '../answer.ts'
import { claimThenRun, type Granted } from '../run/claim-then-run.ts'
import type { Core } from '../runtime.ts'
import { runEffect } from '../steps/effect.ts'
import { answerAfterLoss, finishAs, type Owned } from '../run/finish.ts'
import { Halt, type HaltReason, storeUnavailable } from '../steps/halt.ts'
import { judge } from '../rules/judge.ts'
import { fromJson } from '../steps/json.ts'
import type { OutboxMessage } from '../outbox-message.ts'
import { runPhase } from '../steps/phase.ts'
import type { PhasedExecution, PhasedRun } from '../steps/phased-execution.ts'
import type { Settings } from '../options.ts'

/** The code of one version of a phased operation. Outside of its steps it runs again on every resume: no effect, clock or randomness there. */
export type Definition<Tx, Input> = (execution: PhasedExecution<Tx>, input: Input) => Promise<Outcome>

/** What phased work needs of its store. */
export interface PhasedParts<Tx> {
  readonly transactor: Transactor<Tx>
  readonly steps: Steps<Tx>
  append(tx: Tx, message: OutboxMessage): Promise<void>
}

export interface PhasedWork<Tx> {
  readonly request: ExecuteRequest
  readonly parts: PhasedParts<Tx>
  readonly version: number
  /** JSON text. A resumed row keeps the input it has. Absent: from a worker, who can go on but not begin. */
  readonly input: string | undefined
  /** Every version that is declared in this process, so that rows of older ones can drain. */
  readonly definitions: ReadonlyMap<number, Definition<Tx, never>>
  /** Of work that may wait for a worker: how long. A row that failed waits for one again. */
  readonly deadlineMs: number
  /** What deferred work ends with that was not begun in time. */
  readonly overdue: Outcome
  /** Called once, right before the definition runs. */
  readonly start: (run: () => Promise<Attempt>) => Promise<Attempt>
}

/** Deaths of its owner after which a row is poison: it stops killing processes until a person has looked at it. */
const crashesMax = 5
/** A failing step is tried again after one second, then two, four … up to five minutes. */
const firstRetryMs = 1_000
const retryMsMax = 300_000

export function executePhased<Tx, C>(core: Core<Tx>, settings: Settings<C>, work: PhasedWork<Tx>): Promise<Answer> {
  return claimThenRun(core, settings, {
    request: work.request,
    recovery: 'resume',
    work: work.input === undefined ? undefined : { version: work.version, input: work.input },
    keptLongerMs: work.deadlineMs,
    run: granted => runGranted(core, settings, { ...granted, work }),
    storeDown: async ({ cause, inDoubt }) => unavailable(cause, inDoubt),
  })
}

interface PhasedGrant<Tx> extends Granted {
  readonly work: PhasedWork<Tx>
}

async function runGranted<Tx, C>(core: Core<Tx>, settings: Settings<C>, grant: PhasedGrant<Tx>): Promise<Answer> {
  const { won, request, claimedAtMs, work } = grant
  const owned: Owned<C> = {
    claim: won.claim,
    request,
    settings,
    // Each step's commit renews the lease, so what is left counts from the last of them; a store that fails is retried briefly.
    leftMs: () => settings.leaseMs,
    lease: undefined,
  }
  try {
    // A claim found again after a lost reply comes without its journal.
    const journal =
      won.journal ?? (await core.calls.call('read journal', () => work.parts.steps.readJournal(won.claim.id)))
    if (journal === undefined) return await giveBack(core, owned)
    // Not in doubt: its intents stay open while it is parked, for whoever can read them.
    if (journal.steps === undefined) return await park(core, owned, { cause: 'journal-unreadable', inDoubt: false })
    if (journal.overdue && journal.steps.length === 0) return await endOverdue(core, owned, work.overdue)
    const definition = work.definitions.get(journal.work.version)
    const inDoubt = journal.steps.some(({ state }) => state === 'open')
    if (won.crashes >= crashesMax) return await park(core, owned, { cause: 'poison', inDoubt })
    if (definition === undefined) return await park(core, owned, { cause: 'definition-changed', inDoubt })
    const run: PhasedRun<Tx> = {
      core,
      transactor: work.parts.transactor,
      steps: work.parts.steps,
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
    const attempt = await work.start(() => attemptDefinition(run, { definition, grant }))
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

interface Attempting<Tx> {
  readonly definition: Definition<Tx, never>
  readonly grant: PhasedGrant<Tx>
}

async function attemptDefinition<Tx>(run: PhasedRun<Tx>, { definition, grant }: Attempting<Tx>): Promise<Attempt> {
  try {
    // Stored by this operation's own `input`, and checked by the definition's version.
    const input = fromJson(run.journal.work.input) as never
    return { kind: 'answered', outcome: await definition(executionOf(run, grant), input) }
  } catch (error) {
    return { kind: 'threw', error: error instanceof Halt ? error.cause : error }
  }
}

function executionOf<Tx>(run: PhasedRun<Tx>, { won, request, work }: PhasedGrant<Tx>): PhasedExecution<Tx> {
  const { id, scope, operation } = request.identity
  return {
    id,
    scope,
    operation,
    attempt: won.attempt,
    fence: won.claim.fence,
    recoveryPoint: run.journal.steps.findLast(step => step.state === 'done')?.name,
    // What a step remembers went through JSON as the definition's own T.
    phase: async (name, body) => (await runPhase(run, name, body)) as never,
    effect: async (name, options, call) => (await runEffect(run, { name, options, call })) as never,
    outbox: { append: work.parts.append },
  }
}

interface Finishing<Tx> {
  readonly attempt: Attempt
  readonly tries: number
  readonly run: PhasedRun<Tx>
}

/** The definition returned its outcome, or failed by itself. What is behind it is remembered, so a failure may be run again. */
async function finishEnded<Tx, C>(
  core: Core<Tx>,
  owned: Owned<C>,
  { attempt, tries, run }: Finishing<Tx>,
): Promise<Answer> {
  const judgement = judge(attempt, { ...owned.settings, onFailure: 'resume' })
  const later = judgement.kind === 'retryable' ? { ...judgement, dueInMs: retryInMs(tries) } : judgement
  if (run.doubts.size === 0) return finishAs(core, owned, { attempt, judgement: later })
  // It ended without coming back to an effect that may have happened: an outcome would deny it, a failure would forget it.
  if (judgement.kind === 'keep') return park(core, owned, { cause: 'definition-changed', inDoubt: true })
  await core.calls.call('heartbeat', () => core.store.heartbeat(owned.claim, retryInMs(tries))).catch(() => undefined)
  return { kind: 'executed', attempt, stored: 'declined' }
}

async function finishHalted<Tx, C>(
  core: Core<Tx>,
  owned: Owned<C>,
  { reason, tries, inDoubt }: { reason: HaltReason; tries: number; inDoubt: boolean },
): Promise<Answer> {
  switch (reason.kind) {
    case 'claim-lost':
      return answerAfterLoss(core, owned)
    case 'park':
      return park(core, owned, { cause: reason.cause, inDoubt })
    case 'abandon':
      return refused('outcome-unknown', { ownAttempt: true, retryAfterMs: 1_000, cause: reason.cause })
    case 'unknown':
    case 'retryable': {
      const attempt: Attempt = { kind: 'threw', error: reason.cause }
      const { kind, errorCode } = reason
      const answer = await finishAs(core, owned, {
        attempt,
        judgement: { kind, errorCode, dueInMs: retryInMs(tries) },
      })
      // The definition did nothing wrong: its steps are behind it, and a worker or a retry resumes it.
      const byStore = errorCode === storeUnavailable && answer.kind === 'executed'
      return byStore ? unavailable(reason.cause, true) : answer
    }
    default:
      return unreachable(reason)
  }
}

interface Parking {
  readonly cause: string
  /** An intent is open: such a row is `unknown`, which never expires, and its evidence has a place. */
  readonly inDoubt: boolean
}

async function park<Tx, C>(core: Core<Tx>, owned: Owned<C>, { cause, inDoubt }: Parking): Promise<Answer> {
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

/** Past its deadline, and not begun: nobody waits for it any more, and whoever asks is told so. */
function endOverdue<Tx, C>(core: Core<Tx>, owned: Owned<C>, overdue: Outcome): Promise<Answer> {
  const outcome = { ...overdue, version: owned.settings.outcomeVersion }
  return finishAs(core, owned, { attempt: { kind: 'answered', outcome }, judgement: { kind: 'keep', outcome } })
}

/** Expired or reaped after a worker found it: nobody asked for a new life of it, and there is no input to run it with. */
async function giveBack<Tx, C>(core: Core<Tx>, { claim: { id, claimId } }: Owned<C>): Promise<Answer> {
  await core.calls.call('release', () => core.store.release(id, claimId)).catch(() => undefined)
  return refused('in-progress', { retryAfterMs: 1_000 })
}

function retryInMs(tries: number): number {
  return Math.min(firstRetryMs * 2 ** Math.max(0, tries - 1), retryMsMax)
}

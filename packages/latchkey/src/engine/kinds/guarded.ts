/** Guarded: claim, heartbeat while the handler runs, complete. */
import { isLatchkeyError, LatchkeyError, misconfigured } from '../../ports/errors.ts'
import type { Claim } from '../../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, inProgress, unavailable, type Work } from '../answer.ts'
import {
  attemptOf,
  execution,
  type GuardedExecution,
  neverLost,
  noReferences,
  type Observed,
  saidNotExecuted,
  startWork,
} from '../execution.ts'
import { engine } from '../internal.ts'
import type { GuardedOperation, RunRequest, Shared } from '../operation.ts'
import { guardedChecks } from '../option-checks.ts'
import { boundSettings, type GuardedOptions, type Settings, settingsOf } from '../options.ts'
import { type ReferenceWriter, referencesOf } from '../run/references.ts'
import { judge } from '../rules/judge.ts'
import { admit } from '../run/admit.ts'
import { countInProgress } from '../run/answer-from-row.ts'
import { type Claiming, claimThenRun, type Won } from '../run/claim.ts'
import { type Ending, type OwnedRow, StoredEnd } from '../run/finish.ts'
import { holdLease, type Lease } from '../run/lease.ts'
import { lookOnly } from '../run/look.ts'
import { workInSpan } from '../run/trace.ts'
import { attemptFunction, functionRuns, runRequest } from '../run-function.ts'
import type { Core } from '../runtime.ts'

type GuardedWork = Work<GuardedExecution>

export function guardedOperation<Tx, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  { name, options }: { readonly name: string; readonly options: GuardedOptions<C> },
): GuardedOperation<C> {
  if (options?.onFailure === undefined) {
    throw misconfigured(
      `${name}: guarded needs onFailure: 'hold', 'rerun' or 'store'. Only you know what a failure half-way means`,
    )
  }
  needsTwoConnections(core.store.traits.connections, name)
  const settings = boundSettings(settingsOf(name, options, guardedChecks), core, { ...shared, name })
  const once = claimThenRun<Tx, C, GuardedWork>(core, settings, {
    // `store` stores an error answer, but a dead owner left none: it is held like `hold`.
    recovery: settings.onFailure === 'rerun' ? 'rerun' : 'hold',
    run: (won, execution) =>
      settings.onStoreDown === 'refuse'
        ? new GuardedRun(core, settings, { won, execution }).start()
        : runGrantedAlone(core, settings, { won, execution }),
    storeDown: ({ cause }, request, work) => whenStoreIsDown(core, settings, { request, work, cause }),
  })
  const execute = admit(core, settings, once)
  const owner = { name, settings, clock: core.clock }
  const answerTo = (given: RunRequest, handler: (x: GuardedExecution) => unknown) =>
    execute(runRequest(owner, given), x => attemptFunction(handler, x))
  return {
    kind: 'guarded',
    name,
    [engine]: { name, settings, shared, execute, look: lookOnly(core, settings) },
    ...functionRuns(owner, answerTo),
  }
}

/** Guarded work needs a second connection for its heartbeat while the handler holds the first. */
function needsTwoConnections(connections: number | undefined, operation: string): void {
  if (connections === undefined || connections > 1) return
  throw new LatchkeyError(
    'misconfigured',
    `${operation}: a guarded operation on a pool of one connection starves its own heartbeat. Give the pool max: 2 or more`,
  )
}

interface GrantedWork {
  readonly won: Won
  readonly execution: Claiming<GuardedWork>
}

/** A handler, from its grant to its answer. A class without promises between its steps, because every request has one. */
class GuardedRun<Tx, C> implements OwnedRow<C>, Ending {
  readonly claim: Claim
  readonly lease: Lease
  readonly request: ExecuteRequest
  readonly settings: Settings<C>
  private readonly core: Core<Tx>
  private readonly claiming: Claiming<GuardedWork>
  private readonly context: GuardedExecution & Observed
  /** Created when the handler names its row. */
  private references: ReferenceWriter | undefined

  constructor(core: Core<Tx>, settings: Settings<C>, { won, execution: claiming }: GrantedWork) {
    const { request, claimedAtMs } = claiming
    const { operation } = request.identity
    const { leaseMs, holdMsMax } = settings
    this.core = core
    this.settings = settings
    this.claiming = claiming
    this.request = request
    this.claim = won.claim
    this.lease = holdLease(core, {
      claim: won.claim,
      leaseMs,
      holdMsMax,
      claimedAtMs,
      operation,
      onBeat: request.onBeat,
    })
    const { attempt, claim } = won
    const references = { add: (text: string) => this.addReference(text) }
    this.context = execution(request, { attempt, fence: claim.fence, lease: this.lease, references })
  }

  get lasts(): Lease {
    return this.lease
  }

  start(): void {
    // An adapter returns a throw as a value. One that rejects instead is a throw without an answer.
    const { core, request, claiming, context } = this
    const { telemetry } = core
    const work = telemetry.trace === undefined ? claiming.work : workInSpan(telemetry, request, claiming.work)
    startWork(request, work, context).then(
      ended => this.end(ended),
      (error: unknown) => this.end({ kind: 'threw', error }),
    )
  }

  private addReference(text: string): Promise<void> {
    this.references ??= referencesOf(this.core, this.request.identity.operation, this.claim)
    return this.references.add(text)
  }

  /** What the handler did not wait for is written while the row is still its own. */
  private end(ended: Attempt): void {
    const written = this.references?.written
    if (written === undefined) this.finish(ended)
    else void written.then(() => this.finish(ended))
  }

  private finish(ended: Attempt): void {
    const { core, settings, context, request, claiming } = this
    const { operation } = request.identity
    try {
      const tookMs = core.clock.monotonicMs() - claiming.claimedAtMs
      core.durations.add(operation, tookMs)
      core.telemetry.observe('execution.duration', tookMs, { operation })
      if (tookMs > settings.leaseMs / 2) core.leaseWarnings.warn(operation, settings.leaseMs)
      const judgement = judge(ended, settings, context[saidNotExecuted])
      new StoredEnd(core, this, { end: { attempt: ended, judgement }, ending: this }).write()
    } catch (error) {
      this.threw(error)
    }
  }

  answer(answer: Answer): void {
    this.release()
    this.claiming.answer(answer)
  }

  threw(error: unknown): void {
    this.release()
    this.claiming.threw(error)
  }

  private release(): void {
    // An outcome that could not be stored in time is stored later, under this lease.
    if (!this.lease.isHandedOver) this.lease.end()
    this.core.waiters.wake(this.request.identity.id)
  }
}

function runGrantedAlone<Tx, C>(core: Core<Tx>, settings: Settings<C>, granted: GrantedWork): void {
  const { won, execution: claiming } = granted
  const { id, claimId } = won.claim
  const run = () =>
    new Promise<Answer>((answer, threw) => {
      const { request, work, claimedAtMs } = claiming
      new GuardedRun(core, settings, { won, execution: { request, work, claimedAtMs, answer, threw } }).start()
    })
  // The store is back, and a handler that began without it is still running: this claim has run nothing.
  const giveUp = () => core.calls.call('release', () => core.store.release(id, claimId)).catch(() => undefined)
  runAlone(core, { request: claiming.request, run, giveUp }).then(claiming.answer, claiming.threw)
}

interface UnclaimedWork {
  readonly request: ExecuteRequest
  readonly work: GuardedWork
  readonly cause: unknown
}

async function whenStoreIsDown<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work, cause }: UnclaimedWork,
): Promise<Answer> {
  // Load is not an outage: a store that was not asked has not failed.
  if (settings.onStoreDown === 'refuse' || isLatchkeyError(cause, 'overloaded')) return unavailable(cause)
  const { operation, id } = request.identity
  const run = async (): Promise<Answer> => {
    core.telemetry.count('unprotected', { operation, identity: id })
    const alone = execution(request, { attempt: 1, fence: 0, lease: neverLost, references: noReferences })
    const attempt = await attemptOf(request, work, alone)
    return { kind: 'executed', attempt, stored: 'unprotected' }
  }
  return runAlone(core, { request, run })
}

interface SingleRun {
  readonly request: ExecuteRequest
  readonly run: () => Promise<Answer>
  /** Called instead where a handler of the identity is under way. */
  readonly giveUp?: () => Promise<unknown>
}

/**
 * At most one handler per identity at a time in this process, for operations that may run while the store is down: then no row
 * keeps duplicates apart, so the process does what it can.
 */
async function runAlone<Tx>(core: Core<Tx>, { request, run, giveUp }: SingleRun): Promise<Answer> {
  const { executing } = core
  const { id } = request.identity
  if (executing.has(id)) {
    await giveUp?.()
    countInProgress(core, request)
    return inProgress()
  }
  executing.add(id)
  try {
    return await run()
  } finally {
    executing.delete(id)
  }
}

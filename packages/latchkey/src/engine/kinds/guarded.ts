/** Guarded: claim, heartbeat while the handler runs, complete. */
import { isLatchkeyError, LatchkeyError, misconfigured } from '../../ports/errors.ts'
import { type Answer, type ExecuteRequest, inProgress, unavailable, type Work } from '../answer.ts'
import { attemptOf, attemptThen, execution, type GuardedExecution, neverLost, saidNotExecuted } from '../execution.ts'
import { engine } from '../internal.ts'
import type { GuardedOperation, Shared } from '../operation.ts'
import { guardedChecks } from '../option-checks.ts'
import { type GuardedOptions, type Settings, settingsOf } from '../options.ts'
import { judge } from '../rules/judge.ts'
import { admit } from '../run/admit.ts'
import { countInProgress } from '../run/answer-from-row.ts'
import { claimThenRun, type Granted } from '../run/claim.ts'
import { finishAs } from '../run/finish.ts'
import { holdLease } from '../run/lease.ts'
import { attemptFunction, runRequest, valueOf } from '../run-function.ts'
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
  const settings = { ...settingsOf(name, options, guardedChecks), neverStored: shared.neverStored }
  const once = claimThenRun<Tx, C, GuardedWork>(core, settings, {
    // `store` stores an error answer, but a dead owner left none: it is held like `hold`.
    recovery: settings.onFailure === 'rerun' ? 'rerun' : 'hold',
    run: granted =>
      settings.onStoreDown === 'refuse'
        ? runGranted(core, settings, granted)
        : runGrantedAlone(core, settings, granted),
    storeDown: ({ cause }, request, work) => whenStoreIsDown(core, settings, { request, work, cause }),
  })
  const execute = admit(core, settings, once)
  return {
    kind: 'guarded',
    name,
    [engine]: { name, settings, shared, execute },
    async run(given, handler) {
      const request = runRequest({ name, settings, clock: core.clock }, given)
      const answer = await execute(request, x => attemptFunction(handler, x))
      // The store holds what valueOf decodes: JSON of what the handler returned.
      return valueOf(name, answer) as never
    },
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

function runGranted<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work, won, claimedAtMs }: Granted<GuardedWork>,
): Promise<Answer> {
  const { operation, id } = request.identity
  const { leaseMs, holdMsMax } = settings
  const lease = holdLease(core, { claim: won.claim, leaseMs, holdMsMax, claimedAtMs, operation })
  const context = execution(request, { attempt: won.attempt, fence: won.claim.fence, lease })
  const release = () => {
    // An outcome that could not be stored in time is stored later, under this lease.
    if (!lease.isHandedOver) lease.end()
    core.waiters.wake(id)
  }
  return attemptThen(request, { work, context }, attempt => {
    const tookMs = core.clock.monotonicMs() - claimedAtMs
    core.durations.add(operation, tookMs)
    core.telemetry.observe('execution.duration', tookMs, { operation })
    const judgement = judge(attempt, settings, context[saidNotExecuted])
    const owned = { claim: won.claim, lease, lasts: lease, request, settings }
    return finishAs(core, owned, { attempt, judgement })
  }).then(
    answer => {
      release()
      return answer
    },
    (error: unknown) => {
      release()
      throw error
    },
  )
}

function runGrantedAlone<Tx, C>(core: Core<Tx>, settings: Settings<C>, granted: Granted<GuardedWork>): Promise<Answer> {
  const { id, claimId } = granted.won.claim
  return runAlone(core, {
    request: granted.request,
    run: () => runGranted(core, settings, granted),
    // The store is back, and a handler that began without it is still running: this claim has run nothing.
    giveUp: () => core.calls.call('release', () => core.store.release(id, claimId)).catch(() => undefined),
  })
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
    const attempt = await attemptOf(request, work, execution(request, { attempt: 1, fence: 0, lease: neverLost }))
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

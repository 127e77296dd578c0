/** Guarded: claim, heartbeat while the handler runs, complete. */
import { isLatchkeyError, LatchkeyError } from '../../ports/errors.ts'
import type { Recovery } from '../../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, unavailable, type Work } from '../answer.ts'
import { claimThenRun, type Granted } from '../run/claim-then-run.ts'
import type { Core } from '../runtime.ts'
import { downstreamKey, type GuardedExecution, type Listening, saidNotExecuted } from '../execution.ts'
import { finishAs } from '../run/finish.ts'
import { judge } from '../rules/judge.ts'
import { holdLease } from '../run/lease.ts'
import { runAlone } from '../run/run-alone.ts'
import type { Settings } from '../options.ts'

export function executeGuarded<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work }: { request: ExecuteRequest; work: Work<GuardedExecution> },
): Promise<Answer> {
  return claimThenRun(core, settings, {
    request,
    recovery: recoveryOf(settings),
    run: ({ won, request: asked, claimedAtMs }) =>
      runGranted(core, settings, { won, request: asked, claimedAtMs, work }),
    storeDown: ({ cause }) => whenStoreIsDown(core, settings, { request, work, cause }),
  })
}

/** `store` keeps an error answer, but a dead owner left none: it is held like `hold`. */
function recoveryOf({ onFailure }: Pick<Settings, 'onFailure'>): Recovery {
  return onFailure === 'rerun' ? 'rerun' : 'hold'
}

interface Run extends Granted {
  readonly work: Work<GuardedExecution>
}

function runGranted<Tx, C>(core: Core<Tx>, settings: Settings<C>, granted: Run): Promise<Answer> {
  const run = () => runOwned(core, settings, granted)
  if (settings.onStoreDown === 'refuse') return run()
  const { request } = granted
  const { id, claimId } = granted.won.claim
  // The store is back, and a handler of the time without it is still under way: this claim has run nothing.
  const giveUp = () => core.calls.call('release', () => core.store.release(id, claimId)).catch(() => undefined)
  return runAlone(core, { request, run, giveUp })
}

async function runOwned<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work, won, claimedAtMs }: Run,
): Promise<Answer> {
  const { operation, id } = request.identity
  const lease = holdLease(core, {
    claim: won.claim,
    leaseMs: settings.leaseMs,
    holdMsMax: settings.holdMsMax,
    claimedAtMs,
    operation,
  })
  try {
    const grant = { attempt: won.attempt, fence: won.claim.fence, signalOf: lease.signal }
    const context = execution(request, grant)
    const attempt = await attemptOf(work, context)
    const tookMs = core.clock.monotonicMs() - claimedAtMs
    core.durations.add(operation, tookMs)
    core.telemetry.observe('execution.duration', tookMs, { operation })
    const judgement = judge(attempt, settings, context[saidNotExecuted])
    const owned = { claim: won.claim, lease, leftMs: lease.leftMs, request, settings }
    return await finishAs(core, owned, { attempt, judgement })
  } finally {
    // An outcome that could not be stored in time is stored later, under this lease.
    if (!lease.isHandedOver) lease.end()
    core.waiters.wake(id)
  }
}

/** Adapters report a throw as a value; one that rejects instead is a throw without an answer. */
export function attemptOf<X>(work: Work<X>, context: X): Promise<Attempt> {
  try {
    return Promise.resolve(work(context)).catch(threw)
  } catch (error) {
    return Promise.resolve(threw(error))
  }
}

function threw(error: unknown): Attempt {
  return { kind: 'threw', error }
}

interface Grant extends Pick<GuardedExecution, 'attempt' | 'fence'> {
  /** Asked when the handler first looks. */
  readonly signalOf: () => AbortSignal
}

export function execution(
  { identity, key }: ExecuteRequest,
  { attempt, fence, signalOf }: Grant,
): GuardedExecution & Listening {
  const { id, scope, operation } = identity
  const given = {
    id,
    key,
    scope,
    operation,
    attempt,
    fence,
    downstreamKey: (effect: string, shape?: 'uuid' | 'opaque') => downstreamKey(id, effect, shape),
    notExecuted: () => {
      given[saidNotExecuted] = true
    },
    [saidNotExecuted]: false,
    [signalSource]: signalOf,
  }
  // The one member that is missing is defined here.
  return Object.defineProperty(given, 'signal', lazySignal) as typeof given & { readonly signal: AbortSignal }
}

const signalSource = Symbol('signal')

/** One getter for all executions: a literal with a getter of its own makes a new hidden class each time it is written. */
const lazySignal: PropertyDescriptor & ThisType<{ [signalSource]: () => AbortSignal }> = {
  get() {
    const signal = this[signalSource]()
    Object.defineProperty(this, 'signal', { value: signal, enumerable: true })
    return signal
  },
  enumerable: true,
  configurable: true,
}

/** Of work without a claim that could be lost. */
export function neverFires(): AbortSignal {
  return new AbortController().signal
}

interface StoreDown {
  readonly request: ExecuteRequest
  readonly work: Work<GuardedExecution>
  readonly cause: unknown
}

async function whenStoreIsDown<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work, cause }: StoreDown,
): Promise<Answer> {
  // Load is not an outage: a store that was not asked has not failed.
  if (settings.onStoreDown === 'refuse' || isLatchkeyError(cause, 'overloaded')) return unavailable(cause)
  const { operation, id } = request.identity
  const run = async (): Promise<Answer> => {
    core.telemetry.count('unprotected', { operation, identity: id })
    const attempt = await attemptOf(work, execution(request, { attempt: 1, fence: 0, signalOf: neverFires }))
    return { kind: 'executed', attempt, stored: 'unprotected' }
  }
  return runAlone(core, { request, run })
}

/** Guarded work needs a second connection for its heartbeat while the handler holds the first. */
export function needsTwoConnections(connections: number | undefined, operation: string): void {
  if (connections === undefined || connections > 1) return
  throw new LatchkeyError(
    'misconfigured',
    `${operation}: a guarded operation on a pool of one connection starves its own heartbeat. Give the pool max: 2 or more`,
  )
}

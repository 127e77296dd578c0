/** Guarded: claim, heartbeat while the handler runs, complete. */
import { LatchkeyError } from '../ports/errors.ts'
import type { Recovery } from '../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused, type Work } from './answer.ts'
import { claimThenRun, type Granted } from './claim-loop.ts'
import type { Core } from './core.ts'
import { downstreamKey, type GuardedExecution } from './execution.ts'
import { finish } from './finishing.ts'
import { holdLease } from './lease.ts'
import type { Settings } from './settings.ts'

export async function executeGuarded<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work }: { request: ExecuteRequest; work: Work<GuardedExecution> },
): Promise<Answer> {
  return claimThenRun(core, settings, {
    request,
    recovery: recoveryOf(settings),
    run: granted => runOwned(core, settings, { ...granted, work }),
    storeDown: cause => whenStoreIsDown(core, settings, { request, work, cause }),
  })
}

/** `store` keeps an error answer, but a dead owner left none: it is held like `hold`. */
function recoveryOf({ onFailure }: Pick<Settings, 'onFailure'>): Recovery {
  return onFailure === 'rerun' ? 'rerun' : 'hold'
}

interface Run extends Granted {
  readonly work: Work<GuardedExecution>
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
    const { fence } = won.claim
    const attempt = await attemptOf(work, execution(request, { attempt: won.attempt, fence, signal: lease.signal }))
    core.telemetry.observe('execution.duration', core.clock.monotonicMs() - claimedAtMs, { operation })
    return await finish(core, { claim: won.claim, leftMs: lease.leftMs, request, settings }, attempt)
  } finally {
    lease.end()
    core.waiters.wake(id)
  }
}

/** Adapters report a throw as a value; one that rejects instead is a throw without an answer. */
export async function attemptOf<X>(work: Work<X>, context: X): Promise<Attempt> {
  try {
    return await work(context)
  } catch (error) {
    return { kind: 'threw', error }
  }
}

export function execution(
  { identity, key }: ExecuteRequest,
  grant: Pick<GuardedExecution, 'attempt' | 'fence' | 'signal'>,
): GuardedExecution {
  const { id, scope, operation } = identity
  return { key, scope, operation, ...grant, downstreamKey: (effect, shape) => downstreamKey(id, effect, shape) }
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
  if (settings.ifStoreDown === 'refuse') return refused('store-unavailable', { cause, retryAfterMs: 1_000 })
  core.telemetry.count('unprotected', { operation: request.identity.operation, identity: request.identity.id })
  const never = new AbortController().signal
  const attempt = await attemptOf(work, execution(request, { attempt: 1, fence: 0, signal: never }))
  return { kind: 'executed', attempt, stored: 'unprotected' }
}

/** Guarded work needs a second connection for its heartbeat while the handler holds the first. */
export function needsTwoConnections(connections: number | undefined, operation: string): void {
  if (connections === undefined || connections > 1) return
  throw new LatchkeyError(
    'misconfigured',
    `${operation}: a guarded operation on a pool of one connection starves its own heartbeat. Give the pool max: 2 or more`,
  )
}

/** Guarded: claim, heartbeat while the handler runs, complete. */
import { LatchkeyError } from '../ports/errors.ts'
import type { ClaimRequest, Recovery } from '../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused, type Work } from './answer.ts'
import { claim, type Claimed } from './claiming.ts'
import type { Core } from './core.ts'
import { downstreamKey, type GuardedExecution } from './execution.ts'
import { finish } from './finishing.ts'
import { holdLease } from './lease.ts'
import { answerSeen } from './seen.ts'
import type { Settings } from './settings.ts'

/** A row that changes hands faster than we can look is contended, not free: after this many looks the caller hears 409. */
const looksMax = 5

export async function executeGuarded<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work }: { request: ExecuteRequest; work: Work<GuardedExecution> },
): Promise<Answer> {
  for (let look = 0; look < looksMax; look++) {
    const claimedAtMs = core.clock.monotonicMs()
    const claimed = await claim(core, claimRequest(core, settings, request))
    switch (claimed.kind) {
      case 'unavailable':
        return whenStoreIsDown(core, settings, { request, work, cause: claimed.cause })
      case 'won':
        return runOwned(core, settings, { request, work, claimed, claimedAtMs })
      case 'seen': {
        const seen = await answerSeen(core, settings, { record: claimed.record, request })
        if (seen.kind === 'answer') return seen.answer
        request = seen.request
      }
    }
  }
  return refused('in-progress', { retryAfterMs: 1_000 })
}

function claimRequest<Tx, C>(core: Core<Tx>, settings: Settings<C>, request: ExecuteRequest): ClaimRequest {
  return {
    identity: request.identity,
    claimId: core.clock.randomId(),
    fingerprint: request.fingerprint,
    recovery: recoveryOf(settings),
    leaseMs: settings.leaseMs,
    expiresInMs: settings.holdMsMax + settings.retentionMs,
    description: request.description,
  }
}

/** `store` keeps an error answer, but a dead owner left none: it is held like `hold`. */
function recoveryOf({ onFailure }: Pick<Settings, 'onFailure'>): Recovery {
  return onFailure === 'rerun' ? 'rerun' : 'hold'
}

type Won = Extract<Claimed, { kind: 'won' }>
interface Run {
  readonly request: ExecuteRequest
  readonly work: Work<GuardedExecution>
  readonly claimed: Won
  readonly claimedAtMs: number
}

async function runOwned<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work, claimed, claimedAtMs }: Run,
): Promise<Answer> {
  const { operation, id } = request.identity
  countGrant(core, claimed, request)
  const lease = holdLease(core, {
    claim: claimed.claim,
    leaseMs: settings.leaseMs,
    holdMsMax: settings.holdMsMax,
    claimedAtMs,
    operation,
  })
  try {
    const { fence } = claimed.claim
    const attempt = await attemptOf(work, execution(request, { attempt: claimed.attempt, fence, signal: lease.signal }))
    core.telemetry.observe('execution.duration', core.clock.monotonicMs() - claimedAtMs, { operation })
    return await finish(core, { claim: claimed.claim, lease, request, settings }, attempt)
  } finally {
    lease.end()
    core.waiters.wake(id)
  }
}

function countGrant<Tx>(core: Core<Tx>, { from }: Won, { identity }: ExecuteRequest): void {
  const attributes = { operation: identity.operation, identity: identity.id }
  core.telemetry.count('reserve.created', attributes)
  if (from === 'expired') core.telemetry.count('reserve.after_expiry', attributes)
  if (from === 'failed_retryable') core.telemetry.count('reserve.failed_retry', attributes)
  if (from === 'dead-lease') core.telemetry.count('takeover', attributes)
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

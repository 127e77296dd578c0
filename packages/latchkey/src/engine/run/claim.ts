/**
 * Claims the row, and runs the work once it is granted: what guarded and phased work begin with. A claim whose reply was lost is found again
 * by its claimId, or remembered and released.
 */
import { isLatchkeyError, wasNeverSent } from '../../ports/errors.ts'
import type { WorkInput } from '../../ports/steps.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import type { ClaimRequest, ClaimResult, KeyRecord, Recovery } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, inProgress } from '../answer.ts'
import { type Settings, tombstoneOf } from '../options.ts'
import type { Core } from '../runtime.ts'
import type { Once } from './admit.ts'
import { answerFromRow, grantOf } from './answer-from-row.ts'

/** A row that changes hands faster than it can be read is contended, not free: after this many tries the caller gets 409. */
const looksMax = 5

export type Won = Extract<ClaimResult, { kind: 'won' }>

export interface Granted<W> {
  readonly won: Won
  /** With the fingerprint that the row was granted under. */
  readonly request: ExecuteRequest
  readonly work: W
  /** Monotonic time from before the claim was sent. */
  readonly claimedAtMs: number
}

/** How an operation claims its rows, and what it does with a grant. */
export interface ClaimPlan<W> {
  readonly recovery: Recovery
  /** How much longer than others a row is retained that never finishes. Default 0. */
  readonly extraRetentionMs?: number
  /** Phased: what a new row stores to be resumed with. */
  readonly inputOf?: (work: W) => WorkInput | undefined
  readonly run: (granted: Granted<W>) => Promise<Answer>
  readonly storeDown: (down: Unavailable, request: ExecuteRequest, work: W) => Promise<Answer>
}

export function claimThenRun<Tx, C, W>(core: Core<Tx>, settings: Settings<C>, plan: ClaimPlan<W>): Once<W> {
  const { recovery, inputOf } = plan
  const { leaseMs } = settings
  const expiresInMs = settings.holdMsMax + settings.retentionMs + (plan.extraRetentionMs ?? 0)
  const tombstoneMs = tombstoneOf(settings)
  // No async function: the frame of one costs a request more than the claim does, and every request comes this way.
  const once = (request: ExecuteRequest, work: W, seen?: SeenRow): Promise<Answer> => {
    const claimedAtMs = core.clock.monotonicMs()
    return claim(core, {
      identity: request.identity,
      claimId: core.clock.randomId(),
      fingerprint: request.fingerprint,
      recovery,
      leaseMs,
      expiresInMs,
      description: request.description,
      tombstoneMs,
      work: inputOf?.(work),
      // A caller that may not see a row may not get it either: first it claims only a new row, then the one it was allowed to see.
      takeOver: request.authorizeReplay && (seen === undefined ? 'none' : grantOf(seen.record)),
    }).then(claimed => {
      switch (claimed.kind) {
        case 'unavailable':
          return plan.storeDown(claimed, request, work)
        case 'won':
          countGrant(core, claimed, request)
          return plan.run({ won: claimed, request, work, claimedAtMs })
        case 'seen':
          return fromRow(request, work, { record: claimed.record, looks: (seen?.looks ?? 0) + 1 })
      }
    })
  }
  const fromRow = async (request: ExecuteRequest, work: W, seen: SeenRow): Promise<Answer> => {
    const found = await answerFromRow(core, settings, { record: seen.record, request })
    if (found.kind === 'answer') return found.answer
    return seen.looks < looksMax ? once(found.request, work, seen) : inProgress()
  }
  return once
}

/** What the last claim met instead of a grant. */
interface SeenRow {
  readonly record: KeyRecord
  /** How often a row was met. */
  readonly looks: number
}

function countGrant<Tx>(core: Core<Tx>, { from }: Won, { identity }: ExecuteRequest): void {
  const attributes = { operation: identity.operation, identity: identity.id }
  // A key is created once. A grant that takes it over or tries it again is counted as that.
  if (from === 'none' || from === 'expired') core.telemetry.count('reserve.created', attributes)
  if (from === 'expired') core.telemetry.count('reserve.after_expiry', attributes)
  if (from === 'failed_retryable') core.telemetry.count('reserve.failed_retry', attributes)
  if (from === 'dead-lease') core.telemetry.count('takeover', attributes)
}

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly cause: unknown
  /** The call was sent: the store may have carried it out, or may do so later. */
  readonly inDoubt: boolean
}

/** The call never reached the store. */
export function notSent(why: string): Unavailable {
  return { kind: 'unavailable', cause: new Error(why), inDoubt: false }
}

/** The call failed. A store that answered with its fault leaves no doubt; nor does a call that was never sent. */
export function failed(cause: unknown): Unavailable {
  const answered = isLatchkeyError(cause) && cause.code !== 'store-unavailable' && cause.code !== 'invariant'
  return { kind: 'unavailable', cause, inDoubt: !answered && !wasNeverSent(cause) }
}

/**
 * `ifLost`: what becomes of a claim whose reply was lost and that is not found again. `release`: its handler never ran. `leave`: its row
 * records what has happened already, and must not be freed.
 */
export function claim<Tx>(
  core: Core<Tx>,
  request: ClaimRequest,
  ifLost: 'release' | 'leave' = 'release',
): Promise<ClaimResult | Unavailable> {
  // Phased work is not released: that would race its workers, and the one that finds its dead lease resumes from its journal.
  const isReleased = ifLost === 'release' && request.recovery !== 'resume'
  // First: a claim that may not be sent must not take the probe of an open circuit from the claims that are to be released.
  if (isReleased && core.uncertain.isFull) return Promise.resolve(notSent('too many claims are uncertain'))
  if (!core.calls.circuit.admits()) return Promise.resolve(notSent('the store failed repeatedly'))
  let asked: Promise<ClaimResult>
  try {
    faultPoint('claim', 'before')
    asked = core.store.claim(request)
  } catch (error) {
    // A port that throws instead of rejecting.
    asked = Promise.reject(error)
  }
  return core.calls.answerTo('claim', asked, cause =>
    wasNeverSent(cause) ? failed(cause) : findLostClaim(core, request, { cause, asked, isReleased }),
  )
}

interface LostReply {
  readonly cause: unknown
  /** The call, which the store may still answer. */
  readonly asked: Promise<ClaimResult>
  readonly isReleased: boolean
}

async function findLostClaim<Tx>(
  core: Core<Tx>,
  request: ClaimRequest,
  { cause, asked, isReleased }: LostReply,
): Promise<ClaimResult | Unavailable> {
  const found = await core.calls.call('read', () => core.store.read(request.identity.id)).catch(() => undefined)
  const mine = found?.state === 'in_progress' && found.claimId === request.claimId
  // Half the lease must be left: with less the handler would start on a claim that is already running out.
  if (found !== undefined && mine && found.leaseLeftMs > request.leaseMs / 2) {
    const { id, fence, claimId } = found
    return { kind: 'won', claim: { id, fence, claimId }, attempt: found.attempts, crashes: found.crashes, from: 'none' }
  }
  const unavailable = failed(cause)
  if (unavailable.inDoubt && isReleased) core.uncertain.remember(request, asked)
  return unavailable
}

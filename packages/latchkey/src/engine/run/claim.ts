/** Claiming a row, also when the store's reply is lost: an uncertain claim is found again by its claimId, or remembered and released. */
import { isLatchkeyError, wasNeverSent } from '../../ports/errors.ts'
import type { ClaimRequest, ClaimResult } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'

export type Claimed = ClaimResult | Unavailable

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly cause: unknown
  /** The call was sent: what it asked for may be in the store, now or later. */
  readonly inDoubt: boolean
}

/** Nothing of the call reached the store. */
export function notSent(why: string): Unavailable {
  return { kind: 'unavailable', cause: new Error(why), inDoubt: false }
}

/** The call failed. A store that answered, and says what is wrong, leaves no doubt; nor does a call that never left. */
export function failed(cause: unknown): Unavailable {
  const answered = isLatchkeyError(cause) && cause.code !== 'store-unavailable' && cause.code !== 'invariant'
  return { kind: 'unavailable', cause, inDoubt: !answered && !wasNeverSent(cause) }
}

/**
 * `ifLost`: what becomes of a claim whose reply was lost and that is not found again. `release`: its handler never ran. `leave`: its row says
 * what has happened already, and must not be freed.
 */
export function claim<Tx>(
  core: Core<Tx>,
  request: ClaimRequest,
  ifLost: 'release' | 'leave' = 'release',
): Promise<Claimed> {
  // Phased work is not released: that would race its workers, and whoever finds its dead lease resumes from its journal.
  const isReleased = ifLost === 'release' && request.recovery !== 'resume'
  // First: whoever may not be sent must not take the probe of an open circuit from those that are to be released.
  if (isReleased && core.uncertain.isFull) return Promise.resolve(notSent('too many claims are uncertain'))
  if (!core.calls.circuit.admits()) return Promise.resolve(notSent('the store failed repeatedly'))
  let asked: Promise<ClaimResult> | undefined
  const claimed: Promise<Claimed> = core.calls.call('claim', () => (asked = core.store.claim(request)))
  return claimed.catch((cause: unknown) =>
    wasNeverSent(cause) ? failed(cause) : findLostClaim(core, request, { cause, asked, isReleased }),
  )
}

interface Lost {
  readonly cause: unknown
  /** What the store may still answer. */
  readonly asked: Promise<ClaimResult> | undefined
  readonly isReleased: boolean
}

async function findLostClaim<Tx>(
  core: Core<Tx>,
  request: ClaimRequest,
  { cause, asked, isReleased }: Lost,
): Promise<Claimed> {
  const found = await core.calls.call('read', () => core.store.read(request.identity.id)).catch(() => undefined)
  const mine = found?.state === 'in_progress' && found.claimId === request.claimId
  // Half the lease must be left: below that the handler would start on a claim that is already running out.
  if (found !== undefined && mine && found.leaseLeftMs > request.leaseMs / 2) {
    const { id, fence, claimId } = found
    return { kind: 'won', claim: { id, fence, claimId }, attempt: found.attempts, crashes: found.crashes, from: 'none' }
  }
  const unavailable = failed(cause)
  if (unavailable.inDoubt && isReleased) core.uncertain.remember(request, asked)
  return unavailable
}

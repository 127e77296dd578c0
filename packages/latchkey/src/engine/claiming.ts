/** Claiming a row, also when the store's reply is lost: an uncertain claim is either found again by its claimId, or undone. */
import { sleep } from '../ports/clock.ts'
import { isLatchkeyError, wasNeverSent } from '../ports/errors.ts'
import type { ClaimRequest, ClaimResult } from '../ports/store.ts'
import type { Core } from './core.ts'

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

/** The call failed. A store that answered, and says what is wrong with it, leaves no doubt; nor does a call that never left. */
export function failed(cause: unknown): Unavailable {
  const answered = isLatchkeyError(cause, 'misconfigured') || isLatchkeyError(cause, 'store-not-migrated')
  return { kind: 'unavailable', cause, inDoubt: !answered && !wasNeverSent(cause) }
}

/** Undoing goes on in the background for as long as the lease could last; more at once than this is a store that is down. */
const undoingMax = 1_000
const undoFirstAfterMs = 100

export function claim<Tx>(core: Core<Tx>, request: ClaimRequest): Promise<Claimed> {
  if (!core.calls.circuit.admits()) return Promise.resolve(notSent('the store failed repeatedly'))
  let asked: Promise<ClaimResult> | undefined
  const claimed: Promise<Claimed> = core.calls.call('claim', () => (asked = core.store.claim(request)))
  return claimed.catch((cause: unknown) =>
    wasNeverSent(cause) ? failed(cause) : findLostClaim(core, request, { cause, asked }),
  )
}

interface Lost {
  readonly cause: unknown
  /** What the store may still answer. */
  readonly asked: Promise<ClaimResult> | undefined
}

async function findLostClaim<Tx>(core: Core<Tx>, request: ClaimRequest, { cause, asked }: Lost): Promise<Claimed> {
  const found = await core.calls.call('read', () => core.store.read(request.identity.id)).catch(() => undefined)
  const mine = found?.state === 'in_progress' && found.claimId === request.claimId
  // Half the lease must be left: below that the handler would start on a claim that is already running out.
  if (found !== undefined && mine && found.leaseLeftMs > request.leaseMs / 2) {
    const { id, fence, claimId } = found
    return { kind: 'won', claim: { id, fence, claimId }, attempt: found.attempts, crashes: found.crashes, from: 'none' }
  }
  // Phased work needs no undoing: whoever finds its dead lease goes on from its journal.
  if (request.recovery === 'resume') return failed(cause)
  void undo(core, request)
  // A store that stood still for longer than a lease grants it when the undoing has ended, and the lease begins only then.
  asked?.then(
    late => void (late.kind === 'won' && undo(core, request)),
    () => {},
  )
  return failed(cause)
}

/**
 * The claim may still commit after its caller was answered 503. Left alone it would become an `unknown` whose handler never
 * ran, so it is released by its claimId, again and again until its lease would be over anyway.
 */
async function undo<Tx>(core: Core<Tx>, { identity, claimId, leaseMs }: ClaimRequest): Promise<void> {
  const { clock, closing, calls, undoing } = core
  if (undoing.size >= undoingMax)
    return core.telemetry.report('too many uncertain claims to undo', { identity: identity.id })
  const until = clock.monotonicMs() + leaseMs
  const over = new AbortController()
  undoing.add(over)
  for (let pauseMs = undoFirstAfterMs; clock.monotonicMs() < until && !closing.signal.aborted; pauseMs *= 2) {
    await sleep(clock, Math.min(pauseMs, leaseMs / 6), over.signal)
    if (!calls.circuit.admits()) continue
    const released = await calls.call('release', () => core.store.release(identity.id, claimId)).catch(() => 'failed')
    if (released === 'released') break
  }
  undoing.delete(over)
}

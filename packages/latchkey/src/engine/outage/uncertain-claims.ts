/**
 * Claims whose replies were lost and whose callers were answered 503. Such a claim may have been granted, or may be when the store
 * comes back. Left alone it would become an `unknown` whose handler never ran, so it is remembered and released by its claimId.
 */
import type { Clock } from '../../ports/clock.ts'
import type { ClaimRequest, ClaimResult, Store } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import { backgroundRetry } from './background-retry.ts'
import { lostClaimQueue, type Uncertain } from './lost-claim-queue.ts'
import type { StoreCalls } from '../store/call.ts'

export interface UncertainClaims {
  readonly size: () => number
  /** No new claim may be sent: there is no room to remember it, should its reply be lost. */
  readonly isFull: boolean
  /** `asked`: the call, which the store may still answer. */
  remember(request: ClaimRequest, asked: Promise<ClaimResult> | undefined): void
  /** Resolves when each has been asked about once more. */
  flush(): Promise<void>
}

/** What work needs that an outage left behind. */
export interface AfterOutage<Tx> {
  readonly store: Store<Tx>
  readonly calls: StoreCalls
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly closing: AbortSignal
}

/**
 * About 30 MB, and some minutes of full load on a store that takes claims and answers none. It keeps new claims from being sent; those under
 * way when it is reached are still remembered.
 */
const claimsMax = 100_000
/** The port's limit for one call. */
const batchMax = 1_000
/** The reply may have been lost a moment before the commit. */
const firstAfterMs = 100
/** As often as an open circuit admits a probe. */
const outagePauseMs = 1_000

export function uncertainClaims<Tx>({ store, calls, clock, telemetry, closing }: AfterOutage<Tx>): UncertainClaims {
  const claims = lostClaimQueue(clock)
  const retry = backgroundRetry({ clock, turn, closing })
  let flushing = false

  function add({ identity, claimId, leaseMs }: ClaimRequest, dueInMs: number): void {
    claims.add({ id: identity.id, claimId, leaseMs }, dueInMs)
    if (!uncertain.isFull && claims.size() >= claimsMax) {
      uncertain.isFull = true
      telemetry.report(`${claimsMax} claims are uncertain: new ones are refused until the store is back`, {})
    }
    retry.wake(leaseMs)
  }

  function remove(claimId: string): void {
    claims.remove(claimId)
    uncertain.isFull &&= claims.size() >= claimsMax
  }

  async function turn(): Promise<number | undefined> {
    const batch = claims.due({ countMax: batchMax, all: flushing })
    if (batch.length === 0) return claims.nextDueInMs()
    if (!calls.circuit.admits()) return outagePauseMs
    try {
      const lost = batch.map(({ id, claimId }) => ({ id, claimId }))
      const over = new Set(await calls.call('release', () => store.releaseMany(lost)))
      for (const claim of batch) {
        if (over.has(claim.claimId) || isNeverGranted(claim)) remove(claim.claimId)
        else claims.addAgain(claim)
      }
      return claims.nextDueInMs()
    } catch {
      return outagePauseMs
    }
  }

  /**
   * The store does not have it. A server that was stopped may yet read it from its socket, so it counts as never granted only when
   * a whole lease has passed since the store was back.
   */
  function isNeverGranted(claim: Uncertain): boolean {
    const nowMs = clock.monotonicMs()
    claim.answeredAtMs ??= nowMs
    return flushing || nowMs - claim.answeredAtMs >= claim.leaseMs
  }

  const uncertain = {
    size: claims.size,
    isFull: false,
    remember(request: ClaimRequest, asked: Promise<ClaimResult> | undefined) {
      add(request, firstAfterMs)
      // The store may answer after all. Such a grant begins its lease only now, perhaps long after the last release.
      asked?.then(
        late => {
          if (late.kind === 'won') add(request, 0)
          else if (late.record.claimId !== request.claimId) remove(request.claimId)
        },
        () => {},
      )
    },
    async flush() {
      flushing = true
      if (claims.size() > 0) await retry.finish()
    },
  }
  return uncertain
}

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
  /** No new claim is sent: what became of it could not be remembered. */
  isFull(): boolean
  /** `asked`: what the store may still answer. */
  remember(request: ClaimRequest, asked: Promise<ClaimResult> | undefined): void
  /** Resolves when each has been asked about once more. */
  flush(): Promise<void>
}

export interface AfterOutage<Tx> {
  readonly store: Store<Tx>
  readonly calls: StoreCalls
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly closing: AbortSignal
}

/**
 * About 30 MB, and some minutes of full load on a store that takes claims and answers none. Those under way when it is reached are
 * remembered, too: it keeps new ones from being sent.
 */
const claimsMax = 100_000
/** What the port allows in one call. */
const batchMax = 1_000
/** The reply may have been lost a moment before the commit. */
const firstAfterMs = 100
/** As often as an open circuit lets somebody try. */
const outagePauseMs = 1_000

export function uncertainClaims<Tx>({ store, calls, clock, telemetry, closing }: AfterOutage<Tx>): UncertainClaims {
  const claims = lostClaimQueue(clock)
  const retry = backgroundRetry({ clock, turn, closing })
  let flushing = false
  let saidFull = false

  function add({ identity, claimId, leaseMs }: ClaimRequest, dueInMs: number): void {
    claims.add({ id: identity.id, claimId, leaseMs }, dueInMs)
    retry.wake(leaseMs)
  }

  async function turn(): Promise<number | undefined> {
    const batch = claims.due({ countMax: batchMax, all: flushing })
    if (batch.length === 0) return claims.nextDueInMs()
    if (!calls.circuit.admits()) return outagePauseMs
    try {
      const lost = batch.map(({ id, claimId }) => ({ id, claimId }))
      const over = new Set(await calls.call('release', () => store.releaseMany(lost)))
      for (const claim of batch) {
        if (over.has(claim.claimId) || isNeverGranted(claim)) claims.remove(claim.claimId)
        else claims.addAgain(claim)
      }
      return claims.nextDueInMs()
    } catch {
      return outagePauseMs
    }
  }

  /**
   * Looked for, and not there. A server that stood still may yet read it from its socket, so it counts as never granted only when
   * a whole lease has passed since the store was back.
   */
  function isNeverGranted(claim: Uncertain): boolean {
    const nowMs = clock.monotonicMs()
    claim.answeredAtMs ??= nowMs
    return flushing || nowMs - claim.answeredAtMs >= claim.leaseMs
  }

  return {
    size: claims.size,
    isFull() {
      const full = claims.size() >= claimsMax
      if (full && !saidFull) {
        telemetry.report(`${claimsMax} claims are uncertain: new ones are refused until the store is back`, {})
      }
      saidFull = full
      return full
    },
    remember(request, asked) {
      add(request, firstAfterMs)
      // The store may answer after all. A grant begins its lease only now, perhaps long after the last look.
      asked?.then(
        late => {
          if (late.kind === 'won') add(request, 0)
          else if (late.record.claimId !== request.claimId) claims.remove(request.claimId)
        },
        () => {},
      )
    },
    async flush() {
      flushing = true
      if (claims.size() > 0) await retry.finish()
    },
  }
}

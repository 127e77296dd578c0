/**
 * Claims whose replies were lost and whose callers were answered 503. Such a claim may have been granted, or may be when the store
 * comes back. Left alone it would become an `unknown` whose handler never ran, so it is remembered and released by its claimId.
 */
import type { Clock } from '../ports/clock.ts'
import type { ClaimRequest, ClaimResult, LostClaim, Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { backgroundRetry } from './background-retry.ts'
import type { StoreCalls } from './store-calls.ts'

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
/** A claim that was not found is looked for less and less often, until a lease has passed since the store was back. */
const pauseMsMax = 5_000
/** As often as an open circuit lets somebody try. */
const outagePauseMs = 1_000

interface Uncertain extends LostClaim {
  readonly leaseMs: number
  dueAtMs: number
  pauseMs: number
  /** When the store first answered about it, by the monotonic clock: it was back. */
  answeredAtMs: number | undefined
}

export function uncertainClaims<Tx>({ store, calls, clock, telemetry, closing }: AfterOutage<Tx>): UncertainClaims {
  /** Nothing was heard of them yet; in the order in which they are due. */
  const fresh = new Map<string, Uncertain>()
  /** Looked for at least once; about in that order, so that one look at the first says whether any is due. */
  const absent = new Map<string, Uncertain>()
  const retry = backgroundRetry({ clock, turn, closing })
  const size = () => fresh.size + absent.size
  let flushing = false
  let saidFull = false

  function add({ identity, claimId, leaseMs }: ClaimRequest, dueInMs: number): void {
    forget(claimId)
    const dueAtMs = clock.monotonicMs() + dueInMs
    const found = { id: identity.id, claimId, leaseMs }
    fresh.set(claimId, { ...found, dueAtMs, pauseMs: firstAfterMs, answeredAtMs: undefined })
    retry.wake(leaseMs)
  }

  function forget(claimId: string): void {
    fresh.delete(claimId)
    absent.delete(claimId)
  }

  async function turn(): Promise<number | undefined> {
    const batch = dueClaims()
    if (batch.length === 0) return nextDueInMs()
    if (!calls.circuit.admits()) return outagePauseMs
    try {
      const lost = batch.map(({ id, claimId }) => ({ id, claimId }))
      const over = new Set(await calls.call('release', () => store.releaseMany(lost)))
      for (const claim of batch) {
        forget(claim.claimId)
        if (!over.has(claim.claimId) && !isDecided(claim)) absent.set(claim.claimId, claim)
      }
      return nextDueInMs()
    } catch {
      return outagePauseMs
    }
  }

  function dueClaims(): Uncertain[] {
    const nowMs = clock.monotonicMs()
    const due: Uncertain[] = []
    for (const claims of [fresh, absent]) {
      for (const claim of claims.values()) {
        if (due.length === batchMax || (!flushing && claim.dueAtMs > nowMs)) break
        due.push(claim)
      }
    }
    return due
  }

  function nextDueInMs(): number | undefined {
    const firsts = [fresh, absent].flatMap(claims => claims.values().next().value ?? [])
    if (firsts.length === 0) return undefined
    return Math.max(0, Math.min(...firsts.map(({ dueAtMs }) => dueAtMs)) - clock.monotonicMs())
  }

  /**
   * Looked for, and not there. A server that stood still may yet read it from its socket, so it counts as never granted only when
   * a whole lease has passed since the store was back.
   */
  function isDecided(claim: Uncertain): boolean {
    const nowMs = clock.monotonicMs()
    claim.answeredAtMs ??= nowMs
    claim.dueAtMs = nowMs + claim.pauseMs
    claim.pauseMs = Math.min(2 * claim.pauseMs, pauseMsMax)
    return flushing || nowMs - claim.answeredAtMs >= claim.leaseMs
  }

  return {
    size,
    isFull() {
      const full = size() >= claimsMax
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
          else if (late.record.claimId !== request.claimId) forget(request.claimId)
        },
        () => {},
      )
    },
    async flush() {
      flushing = true
      if (size() > 0) await retry.finish()
    },
  }
}

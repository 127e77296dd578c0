/** Which uncertain claims are due to be released. */
import type { Clock } from '../../ports/clock.ts'
import type { LostClaim } from '../../ports/store.ts'

export interface Uncertain extends LostClaim {
  readonly leaseMs: number
  dueAtMs: number
  pauseMs: number
  /** When the store first answered about it, by the monotonic clock: it was back. */
  answeredAtMs: number | undefined
}

export interface LostClaimQueue {
  size(): number
  add(claim: LostClaim & { readonly leaseMs: number }, dueInMs: number): void
  /** The store does not have it: due again after a pause that grows. */
  addAgain(claim: Uncertain): void
  remove(claimId: string): void
  due(limit: { readonly countMax: number; readonly all: boolean }): Uncertain[]
  /** Undefined: the queue is empty. */
  nextDueInMs(): number | undefined
}

const firstPauseMs = 100
/** The pause doubles up to this, until a lease has passed since the store was back. */
const pauseMsMax = 5_000

export function lostClaimQueue(clock: Clock): LostClaimQueue {
  /** Not asked for yet; in the order in which they are due. */
  const fresh = new Map<string, Uncertain>()
  /** Asked for at least once; about in that order, so that the first one shows whether any is due. */
  const absent = new Map<string, Uncertain>()
  const remove = (claimId: string) => {
    fresh.delete(claimId)
    absent.delete(claimId)
  }
  return {
    size: () => fresh.size + absent.size,
    add({ id, claimId, leaseMs }, dueInMs) {
      remove(claimId)
      const dueAtMs = clock.monotonicMs() + dueInMs
      fresh.set(claimId, { id, claimId, leaseMs, dueAtMs, pauseMs: firstPauseMs, answeredAtMs: undefined })
    },
    addAgain(claim) {
      remove(claim.claimId)
      claim.dueAtMs = clock.monotonicMs() + claim.pauseMs
      claim.pauseMs = Math.min(2 * claim.pauseMs, pauseMsMax)
      absent.set(claim.claimId, claim)
    },
    remove,
    due({ countMax, all }) {
      const nowMs = clock.monotonicMs()
      const due: Uncertain[] = []
      for (const claims of [fresh, absent]) {
        for (const claim of claims.values()) {
          if (due.length === countMax || (!all && claim.dueAtMs > nowMs)) break
          due.push(claim)
        }
      }
      return due
    },
    nextDueInMs() {
      const firsts = [fresh, absent].flatMap(claims => claims.values().next().value ?? [])
      if (firsts.length === 0) return undefined
      return Math.max(0, Math.min(...firsts.map(({ dueAtMs }) => dueAtMs)) - clock.monotonicMs())
    },
  }
}

/**
 * One token bucket for each scope in the store, for all its processes. A process leases some tokens at a time and spends them without asking, so that a
 * limit holds up to one lease per process. While the store does not answer, the process has buckets of its own.
 */
import { hash } from 'node:crypto'
import { uuidOfHex } from '../../ports/clock.ts'
import type { Tokens } from '../../ports/faculties/quotas.ts'
import { RecentScopes } from './recent-scopes.ts'
import type { LimitKind, QuotaHost } from './source.ts'
import { TokenBuckets } from './token-buckets.ts'

/** Ten leases empty a bucket: more of them ask the store more often, fewer leave more tokens in processes that do not need them. */
const leasesPerMinute = 10
const leaseTokensMax = 100
/** Tokens that a process leased and did not spend are the store's again, which has filled up by then. */
const lapseMs = 60_000
/** After an empty bucket: ten questions a second, however fast it fills. */
const emptyMsMin = 100
/** After a lease that the store did not answer. */
const ownMs = 1_000
/** A caller that was overtaken so often is refused. */
const turnsMax = 10
/** A lease makes one bucket at most, so that twice as many are deleted as can be made. */
const leasesPerPrune = 100
const prunedMax = 2 * leasesPerPrune

interface Held {
  readonly bucket: string
  /** Leased, and not spent yet. */
  tokens: number
  lapsesAtMs: number
  /** The store had none, and has none before. */
  emptyUntilMs: number
  /** Callers that wait for the lease under way. */
  waiting: number
  /** Resolves with whether the store answered. */
  leasing: Promise<boolean> | undefined
  isReturning: boolean
}

export interface SharedLimit {
  readonly limit: LimitKind
  readonly perMinute: number
  /** Absent: all operations together. */
  readonly operation: string | undefined
}

export class SharedBuckets {
  private readonly host: QuotaHost
  private readonly perMinute: number
  private readonly leaseTokens: number
  private readonly own: TokenBuckets
  private readonly held: RecentScopes<Held>
  private ownUntilMs = Number.NEGATIVE_INFINITY
  private leases = 0

  constructor(host: QuotaHost, { limit, perMinute, operation }: SharedLimit) {
    this.host = host
    this.perMinute = perMinute
    this.leaseTokens = Math.min(leaseTokensMax, Math.max(1, Math.floor(perMinute / leasesPerMinute)))
    this.own = new TokenBuckets(perMinute, host.clock)
    const bucketOf = (scope: string) => JSON.stringify(['latchkey.limit.v1', limit, operation ?? null, scope])
    this.held = new RecentScopes(scope => nothingHeld(uuidOfHex(hash('sha256', bucketOf(scope), 'hex'))))
  }

  take(scope: string, mayWait: boolean): boolean | Promise<boolean> {
    const held = this.held.of(scope)
    if (this.spend(held)) return true
    if (this.isEmpty(held)) return false
    if (this.isAlone()) return this.own.take(scope)
    if (mayWait) return this.takeLeased(scope, held)
    void this.lease(held)
    return this.own.take(scope)
  }

  giveBack(scope: string): void {
    if (this.isAlone()) return this.own.giveBack(scope)
    const held = this.held.of(scope)
    // Of a lease that has lapsed: the store has filled up since.
    if (this.nowMs() >= held.lapsesAtMs) return
    held.tokens += 1
    if (this.hasSurplus(held)) void this.returnSurplus(held)
  }

  nextInMs(scope: string): number {
    const emptyMs = this.held.of(scope).emptyUntilMs - this.nowMs()
    return Math.max(0, emptyMs, this.isAlone() ? this.own.nextInMs(scope) : 0)
  }

  private nowMs(): number {
    return this.host.clock.monotonicMs()
  }

  private spend(held: Held): boolean {
    if (held.tokens < 1 || this.nowMs() >= held.lapsesAtMs) return false
    held.tokens -= 1
    return true
  }

  private isEmpty({ emptyUntilMs }: Held): boolean {
    return this.nowMs() < emptyUntilMs
  }

  private hasSurplus({ tokens }: Held): boolean {
    return tokens > 2 * this.leaseTokens
  }

  private isAlone(): boolean {
    return this.nowMs() < this.ownUntilMs
  }

  private async takeLeased(scope: string, held: Held): Promise<boolean> {
    for (let turn = 0; turn < turnsMax; turn++) {
      held.waiting += 1
      const isAnswered = await this.lease(held)
      held.waiting -= 1
      if (!isAnswered) return this.own.take(scope)
      if (this.spend(held)) return true
      if (this.isEmpty(held)) return false
    }
    return false
  }

  /** One at a time for a bucket. */
  private lease(held: Held): Promise<boolean> {
    held.leasing ??= this.askForTokens(held).finally(() => (held.leasing = undefined))
    return held.leasing
  }

  private async askForTokens(held: Held): Promise<boolean> {
    const { calls, quotas } = this.host
    // The claim will meet the outage. A limit is not worth a wait for it.
    if (!calls.circuit.admits()) return this.decideAlone()
    const askedAtMs = this.nowMs()
    // In a later turn, when everybody who asks now is waiting. They spend theirs at once, so that at most one lease is left over.
    await Promise.resolve()
    const asked = this.tokensOf(held, Math.min(this.perMinute, Math.max(this.leaseTokens, held.waiting)))
    try {
      const { granted, nextInMs } = await calls.call('lease', () => quotas.lease(asked))
      held.tokens = (askedAtMs < held.lapsesAtMs ? held.tokens : 0) + granted
      held.lapsesAtMs = askedAtMs + lapseMs
      // The rest is for others: no caller asks again before there is more.
      if (granted < asked.tokens) held.emptyUntilMs = this.nowMs() + Math.max(nextInMs, emptyMsMin)
      this.pruneNowAndThen()
      return true
    } catch (error) {
      this.host.telemetry.report(
        'tokens of a shared limit could not be leased, so that this process limits by itself: check the store, and the rights on its table of buckets',
        { error },
      )
      return this.decideAlone()
    }
  }

  private decideAlone(): false {
    this.ownUntilMs = this.nowMs() + ownMs
    this.host.telemetry.count('limit.unshared', {})
    return false
  }

  /** A crowd of retries has taken tokens and given them back: other processes may need them. */
  private async returnSurplus(held: Held): Promise<void> {
    if (held.isReturning) return
    held.isReturning = true
    const { calls, quotas } = this.host
    // In a later turn, with all that the crowd gives back.
    await Promise.resolve()
    while (this.hasSurplus(held)) {
      const surplus = this.tokensOf(held, held.tokens - this.leaseTokens)
      held.tokens = this.leaseTokens
      // What the store does not take is lost, as if it had lapsed.
      await calls.call('give back', () => quotas.giveBack(surplus)).catch(() => undefined)
    }
    held.isReturning = false
  }

  private pruneNowAndThen(): void {
    const { calls, quotas } = this.host
    this.leases += 1
    if (this.leases % leasesPerPrune !== 0) return
    // Counted and reported where the store is called.
    calls.call('prune', () => quotas.prune({ limit: prunedMax })).catch(() => undefined)
  }

  private tokensOf({ bucket }: Held, tokens: number): Tokens {
    return { bucket, perMinute: this.perMinute, tokens }
  }
}

function nothingHeld(bucket: string): Held {
  return {
    ...{ bucket, tokens: 0, lapsesAtMs: Number.NEGATIVE_INFINITY, emptyUntilMs: Number.NEGATIVE_INFINITY },
    ...{ waiting: 0, leasing: undefined, isReturning: false },
  }
}

/** One token bucket for each scope. It holds a minute's worth, and fills evenly. */
import type { Clock } from '../../ports/clock.ts'
import { RecentScopes } from './recent-scopes.ts'

const minuteMs = 60_000

interface Bucket {
  tokens: number
  filledAtMs: number
}

export class TokenBuckets {
  private readonly perMinute: number
  private readonly clock: Pick<Clock, 'monotonicMs'>
  private readonly buckets: RecentScopes<Bucket>

  constructor(perMinute: number, clock: Pick<Clock, 'monotonicMs'>) {
    this.perMinute = perMinute
    this.clock = clock
    this.buckets = new RecentScopes(() => ({ tokens: perMinute, filledAtMs: clock.monotonicMs() }))
  }

  /** Whether there was one. */
  take(scope: string): boolean {
    const bucket = this.filled(scope)
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }

  /** What it was taken for did not happen. */
  giveBack(scope: string): void {
    const bucket = this.filled(scope)
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + 1)
  }

  /** When there will be one. */
  nextInMs(scope: string): number {
    const { tokens } = this.filled(scope)
    return tokens >= 1 ? 0 : ((1 - tokens) * minuteMs) / this.perMinute
  }

  private filled(scope: string): Bucket {
    const bucket = this.buckets.of(scope)
    const nowMs = this.clock.monotonicMs()
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + ((nowMs - bucket.filledAtMs) * this.perMinute) / minuteMs)
    bucket.filledAtMs = nowMs
    return bucket
  }
}

/** One token bucket for each scope. It holds a minute's worth, and fills evenly. */
import type { Clock } from '../../ports/clock.ts'

/**
 * Scopes that are remembered. Beyond it the one that asked longest ago is forgotten, and begins with a full bucket when it comes back: by then
 * ten thousand others have asked.
 */
const scopesMax = 10_000
const minuteMs = 60_000

interface Bucket {
  tokens: number
  filledAtMs: number
}

export class TokenBuckets {
  private readonly perMinute: number
  private readonly clock: Pick<Clock, 'monotonicMs'>
  /** In the order in which they last asked. */
  private readonly buckets = new Map<string, Bucket>()

  constructor(perMinute: number, clock: Pick<Clock, 'monotonicMs'>) {
    this.perMinute = perMinute
    this.clock = clock
  }

  /** Whether there was one. */
  take(scope: string): boolean {
    const bucket = this.bucketOf(scope)
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }

  /** What it was taken for did not happen. */
  giveBack(scope: string): void {
    const bucket = this.bucketOf(scope)
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + 1)
  }

  /** When there will be one. */
  nextInMs(scope: string): number {
    const { tokens } = this.bucketOf(scope)
    return tokens >= 1 ? 0 : ((1 - tokens) * minuteMs) / this.perMinute
  }

  private bucketOf(scope: string): Bucket {
    const nowMs = this.clock.monotonicMs()
    const known = this.buckets.get(scope)
    const bucket = known ?? { tokens: this.perMinute, filledAtMs: nowMs }
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + ((nowMs - bucket.filledAtMs) * this.perMinute) / minuteMs)
    bucket.filledAtMs = nowMs
    // Deleted first, so that it becomes the last.
    if (known !== undefined) this.buckets.delete(scope)
    this.buckets.set(scope, bucket)
    if (this.buckets.size > scopesMax) this.forgetOldest()
    return bucket
  }

  private forgetOldest(): void {
    for (const scope of this.buckets.keys()) {
      this.buckets.delete(scope)
      return
    }
  }
}

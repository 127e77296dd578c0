/** How long an operation took lately: here, and so how long a concurrent duplicate probably still has to wait; and in buckets, which the fleet adds up. */
import type { AddCount } from '../../ports/telemetry.ts'
import { retryAfterMsMin } from '../answer.ts'

/** Enough for a p99 that one slow call does not make, few enough to forget last hour's load. */
const durationsMax = 128
/** With fewer, the p99 is the slowest call. */
const p99CountMin = 100

export interface Durations {
  add(operation: string, ms: number): void
  /** p95 minus what has elapsed, at least a second. */
  leftMs(operation: string, elapsedMs: number): number
  /** Undefined: too few executions to tell. */
  p99Ms(operation: string): number | undefined
}

interface Ring {
  readonly values: number[]
  /** Where the next one goes. */
  next: number
  /** Computed when it is read. */
  p95Ms: number | undefined
}

export interface DurationBucket {
  /** A duration of exactly this long is in it. */
  readonly upToMs: number
  /** Its name in the table of rates. */
  readonly metric: string
}

/**
 * Steps of 1, 2 and 5 up to 20 s, so that an edge is at most 2.5 times what it stands for; 30 s is the default lease, 15 min the default of
 * `holdMsMax`. The names are in the tables of running fleets, which add up what old and new processes count.
 */
export const durationBuckets: readonly DurationBucket[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000],
  ...[60_000, 120_000, 300_000, 900_000, 3_600_000],
].map(upToMs => ({ upToMs, metric: `execution.duration.${upToMs}` }))
/** Longer than all of them. */
export const longerMetric = 'execution.duration.longer'

/** One ring for each declared operation. `count`: into the buckets. */
export function createDurations(count?: AddCount): Durations {
  const rings = new Map<string, Ring>()
  return {
    add(operation, ms) {
      if (count !== undefined) count(operation, bucketOf(ms))
      const ring = rings.get(operation)
      if (ring === undefined) return void rings.set(operation, { values: [ms], next: 1, p95Ms: undefined })
      ring.values[ring.next % durationsMax] = ms
      ring.next = (ring.next % durationsMax) + 1
      ring.p95Ms = undefined
    },
    leftMs(operation, elapsedMs) {
      const ring = rings.get(operation)
      if (ring === undefined) return retryAfterMsMin
      ring.p95Ms ??= percentileOf(ring.values, 0.95)
      return Math.max(retryAfterMsMin, Math.ceil(ring.p95Ms - elapsedMs))
    },
    p99Ms(operation) {
      const { values } = rings.get(operation) ?? { values: [] }
      return values.length < p99CountMin ? undefined : percentileOf(values, 0.99)
    },
  }
}

/** A loop without a closure: every execution asks. */
function bucketOf(ms: number): string {
  for (const { upToMs, metric } of durationBuckets) if (ms <= upToMs) return metric
  return longerMetric
}

/** By nearest rank: a duration that was measured. */
function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0
}

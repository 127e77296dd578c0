/** How long an operation took lately in this process, and so how long a concurrent duplicate probably still has to wait. */
import { retryAfterMsMin } from '../answer.ts'

/** Enough for a p95 that one slow call does not make, few enough to forget last hour's load. */
const durationsMax = 64
const percentile = 0.95

export interface Durations {
  add(operation: string, ms: number): void
  /** p95 minus what has elapsed, at least a second. */
  leftMs(operation: string, elapsedMs: number): number
}

interface Ring {
  readonly values: number[]
  /** Where the next one goes. */
  next: number
  /** Computed when it is read. */
  p95Ms: number | undefined
}

/** One ring for each declared operation. */
export function createDurations(): Durations {
  const rings = new Map<string, Ring>()
  return {
    add(operation, ms) {
      const ring = rings.get(operation)
      if (ring === undefined) return void rings.set(operation, { values: [ms], next: 1, p95Ms: undefined })
      ring.values[ring.next % durationsMax] = ms
      ring.next = (ring.next % durationsMax) + 1
      ring.p95Ms = undefined
    },
    leftMs(operation, elapsedMs) {
      const ring = rings.get(operation)
      if (ring === undefined) return retryAfterMsMin
      ring.p95Ms ??= p95Of(ring.values)
      return Math.max(retryAfterMsMin, Math.ceil(ring.p95Ms - elapsedMs))
    },
  }
}

/** By nearest rank: a duration that was measured. */
function p95Of(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.ceil(percentile * sorted.length) - 1] ?? 0
}

/** How long an operation took lately in this process, and so how long a concurrent duplicate probably still has to wait. */
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
      ring.p95Ms ??= percentileOf(ring.values, 0.95)
      return Math.max(retryAfterMsMin, Math.ceil(ring.p95Ms - elapsedMs))
    },
    p99Ms(operation) {
      const { values } = rings.get(operation) ?? { values: [] }
      return values.length < p99CountMin ? undefined : percentileOf(values, 0.99)
    },
  }
}

/** By nearest rank: a duration that was measured. */
function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0
}

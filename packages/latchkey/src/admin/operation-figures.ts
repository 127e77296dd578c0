/** How each operation behaved in the last hour, over the whole fleet: what all processes have counted, added up. */
import { durationBuckets, longerMetric } from '../engine/run/durations.ts'
import type { Rate } from '../ports/faculties/admin.ts'
import type { LastHour, Took } from './results.ts'

/** What the figures are made of. */
export const figureMetrics: readonly string[] = [
  ...['reserve.created', 'reserve.replay', 'reserve.key_misuse'],
  ...durationBuckets.map(({ metric }) => metric),
  longerMetric,
]

/** `sums`: of one operation. `leaseMs`: if one lease is for a whole execution. */
export function lastHourOf(sums: readonly Rate[], leaseMs: number | undefined): LastHour {
  const countOf = (metric: string) => sums.find(sum => sum.metric === metric)?.count ?? 0
  return {
    reserved: countOf('reserve.created'),
    replayed: countOf('reserve.replay'),
    mismatched: countOf('reserve.key_misuse'),
    took: tookOf(countOf, leaseMs),
  }
}

function tookOf(countOf: (metric: string) => number, leaseMs: number | undefined): Took | undefined {
  const counts = durationBuckets.map(({ upToMs, metric }) => ({ upToMs, count: countOf(metric) }))
  const executions = counts.reduce((sum, { count }) => sum + count, countOf(longerMetric))
  if (executions === 0) return undefined
  const p99Ms = percentileOf(counts, Math.ceil(0.99 * executions))
  return {
    executions,
    p50Ms: percentileOf(counts, Math.ceil(0.5 * executions)),
    p99Ms,
    leaseUsed: leaseMs === undefined || p99Ms === undefined ? undefined : p99Ms / leaseMs,
  }
}

interface Counted {
  readonly upToMs: number
  readonly count: number
}

/** By nearest rank: the upper edge of the bucket that it is in, so that it is never said to be shorter than it was. */
function percentileOf(counts: readonly Counted[], rank: number): number | undefined {
  let seen = 0
  return counts.find(({ count }) => (seen += count) >= rank)?.upToMs
}

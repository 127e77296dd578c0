/**
 * Tells who declared an operation that its lease is short for what it does: an execution that uses most of its lease depends on every
 * heartbeat, and a pause of the process or of the store costs it the claim.
 */
import type { Clock } from '../../ports/clock.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import type { Durations } from './durations.ts'

export interface LeaseWarnings {
  /** An execution took more than half of its lease. Reported if one in a hundred does, once a minute for each operation. */
  warn(operation: string, leaseMs: number): void
}

const quietMs = 60_000

export interface LeaseWarningOptions {
  readonly durations: Pick<Durations, 'p99Ms'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly telemetry: Pick<Telemetry, 'report'>
}

export function leaseWarnings({ durations, clock, telemetry }: LeaseWarningOptions): LeaseWarnings {
  /** By declared operation. */
  const warnedAtMs = new Map<string, number>()
  return {
    warn(operation, leaseMs) {
      const nowMs = clock.monotonicMs()
      if (nowMs - (warnedAtMs.get(operation) ?? Number.NEGATIVE_INFINITY) < quietMs) return
      const p99Ms = durations.p99Ms(operation)
      if (p99Ms === undefined || p99Ms <= leaseMs / 2) return
      warnedAtMs.set(operation, nowMs)
      telemetry.report(
        `one in a hundred executions takes ${Math.round(p99Ms)} ms or longer, more than half of the lease of ${leaseMs} ms: set leaseMs to ${fittingLeaseMs(p99Ms)} or more, or make the handler shorter`,
        { operation },
      )
    },
  }
}

/** As the guide for operations says: twice the p99, in whole seconds, and not below 10. */
function fittingLeaseMs(p99Ms: number): number {
  return Math.max(10, Math.ceil((2 * p99Ms) / 1_000)) * 1_000
}

/** What every execution of one Latchkey shares. */
import type { Clock } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'
import { silentTelemetry, type Telemetry } from '../ports/telemetry.ts'
import { type StoreCalls, storeCalls } from './store-calls.ts'
import { type Waiters, waiters } from './waiters.ts'

export interface Core<Tx> {
  readonly store: Store<Tx>
  readonly calls: StoreCalls
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly waiters: Waiters
  /** Executions under way, so that a shutdown can wait for them. */
  readonly running: Set<Promise<unknown>>
  /** Aborted when a shutdown begins: nothing new is started. */
  readonly draining: AbortController
  /** What ends every heartbeat. A set, not listeners on a signal: an execution adds and removes one in constant time. */
  readonly heartbeats: Set<() => void>
  /** Uncertain claims that are being undone, by claimId. */
  readonly undoing: Set<string>
  /** Aborted when the instance closes: background work of the engine ends. */
  readonly closing: AbortController
}

export interface CoreOptions<Tx> {
  readonly store: Store<Tx>
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly storeTimeoutMs: number
}

export function createCore<Tx>({ store, clock, telemetry, storeTimeoutMs }: CoreOptions<Tx>): Core<Tx> {
  const safe = harmless(telemetry)
  return {
    store,
    clock,
    telemetry: safe,
    calls: storeCalls({ storeName: store.name, timeoutMs: storeTimeoutMs, clock, telemetry: safe }),
    waiters: waiters(clock),
    running: new Set(),
    heartbeats: new Set(),
    undoing: new Set(),
    draining: new AbortController(),
    closing: new AbortController(),
  }
}

/** An observer that throws never changes an outcome. */
function harmless(telemetry: Telemetry): Telemetry {
  if (telemetry === silentTelemetry) return telemetry
  return {
    count: (metric, attributes) => guard(() => telemetry.count(metric, attributes)),
    observe: (metric, value, attributes) => guard(() => telemetry.observe(metric, value, attributes)),
    report: (message, attributes) => guard(() => telemetry.report(message, attributes)),
  }
}

function guard(tell: () => unknown): void {
  try {
    const told = tell()
    // An observer typed as returning nothing may still return a promise.
    if (told !== undefined) Promise.resolve(told).catch(() => {})
  } catch {
    // There is nobody left to tell.
  }
}

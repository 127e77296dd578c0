/** What every execution of one Latchkey shares. */
import { type Clock, DeadlinesByLength, sleep } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'
import type { AddCount, Telemetry } from '../ports/telemetry.ts'
import type { Trail } from './audit/trail.ts'
import { createDurations, type Durations } from './run/durations.ts'
import { type LimitOptions, type Limits, limitsOf } from './limits/limits.ts'
import { type LeaseWarnings, leaseWarnings } from './run/lease-warnings.ts'
import { maintain, type Maintenance, noMaintenance } from './maintenance.ts'
import { type StoreCalls, storeCalls } from './store/call.ts'
import { type StoreChecks, storeChecks } from './store/check.ts'
import { observeStore } from './store/observe.ts'
import { type UncertainClaims, uncertainClaims } from './outage/uncertain-claims.ts'
import { type UnstoredEnds, unstoredEnds } from './outage/unstored-ends.ts'
import { untilIdle, type Waiters, waiters } from './run/admit.ts'

export interface Core<Tx> {
  readonly store: Store<Tx>
  readonly calls: StoreCalls
  readonly checks: StoreChecks
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly waiters: Waiters
  readonly durations: Durations
  /** Of every scope, over all operations. Undefined: not limited. */
  readonly limits: Limits | undefined
  readonly leaseWarnings: LeaseWarnings
  /** Executions under way, so that a shutdown can wait for them. */
  readonly running: Running
  /** Identities under way in this process: of atomic work, and of operations that may run without the store. */
  readonly executing: Set<string>
  /** Aborted when a shutdown begins: nothing new is started. */
  readonly draining: AbortController
  /** Of store calls, and of the first renewal of claims. */
  readonly deadlines: DeadlinesByLength
  readonly uncertain: UncertainClaims
  readonly unstored: UnstoredEnds
  readonly maintenance: Maintenance
  /** Of `audit`. Undefined: nothing is recorded. */
  readonly trail: Trail | undefined
  /** Adds to the store what was counted for the fleet, and counts no more. Never rejects. */
  readonly endRates: () => Promise<void>
  /** Aborted when the instance closes: background work of the engine ends. */
  readonly closing: AbortController
}

export interface Running {
  count: number
  /** Called once, when none is left. */
  whenIdle: (() => void)[]
}

export interface CoreOptions<Tx> {
  readonly store: Store<Tx>
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly storeTimeoutMs: number
  /** Default true. */
  readonly maintenance?: boolean
  readonly limits?: LimitOptions | undefined
  /** Default: nothing is recorded. */
  readonly trail?: TrailMaker
  /** Counts executions by duration, for the fleet. Default: nothing is counted. */
  readonly countDuration?: AddCount | undefined
  /** Default: nothing is counted. */
  readonly endRates?: () => Promise<void>
}

export type TrailMaker = (
  parts: Pick<Core<never>, 'clock' | 'telemetry'> & { readonly timeoutMs: number },
) => Trail | undefined

export function createCore<Tx>(options: CoreOptions<Tx>): Core<Tx> {
  const { store, clock, telemetry, storeTimeoutMs, maintenance = true, limits } = options
  const closing = new AbortController()
  // A call that waits its turn in the store's own queue is not unanswered.
  const timeoutMs = storeTimeoutMs + (store.traits.queueMsMax ?? 0)
  const deadlines = new DeadlinesByLength(clock)
  const calls = storeCalls({ storeName: store.name, timeoutMs, clock, deadlines, telemetry })
  const limitsOfAll = limitsOf(limits, { store, calls, clock, telemetry })
  const waiting = waiters(clock)
  const trail = options.trail?.({ clock, telemetry, timeoutMs })
  const after = { store, calls, clock, telemetry, closing: closing.signal }
  const durations = createDurations(options.countDuration)
  observeStore(store, telemetry)
  return {
    store,
    clock,
    telemetry,
    calls,
    checks: storeChecks({ store, clock, telemetry }),
    waiters: waiting,
    limits: limitsOfAll,
    durations,
    leaseWarnings: leaseWarnings({ durations, clock, telemetry }),
    running: { count: 0, whenIdle: [] },
    executing: new Set(),
    deadlines,
    uncertain: uncertainClaims(after),
    unstored: unstoredEnds({ ...after, waiters: waiting }),
    maintenance: maintenance ? maintain({ ...after, trail }) : noMaintenance,
    trail,
    endRates: options.endRates ?? (async () => {}),
    draining: new AbortController(),
    closing,
  }
}

export interface Closed {
  /** False: something is still running. */
  readonly drained: boolean
  /** How many outcomes the store did not take. They are lost with this process: the recovery of their rows decides. */
  readonly unstored: number
}

export async function close<Tx>(core: Core<Tx>, timeoutMs: number): Promise<Closed> {
  core.draining.abort()
  core.maintenance.stop()
  const late = sleep(core.clock, timeoutMs, core.closing.signal).then(() => false)
  const drained = await Promise.race([untilIdle(core).then(() => true), late])
  await Promise.race([
    Promise.all([core.unstored.flush(), core.uncertain.flush(), core.trail?.flush(), core.endRates()]),
    late,
  ])
  // This also ends the sleep above, which would keep the process alive for the rest of its time.
  core.closing.abort()
  core.waiters.wakeAll()
  core.deadlines.stopIdle()
  const unstored = core.unstored.lose()
  if (unstored > 0) core.telemetry.report(`closed with ${unstored} outcomes that the store did not take`, {})
  const uncertain = core.uncertain.size()
  if (uncertain > 0) core.telemetry.report(`closed with ${uncertain} claims that may have been granted`, {})
  return { drained, unstored }
}

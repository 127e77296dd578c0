/** Which workers run here, and how often. */
import type { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import { policyChecks, type RelayPolicy, targetsCheck } from '../outbox/policy.ts'
import type { Target } from '../ports/broker.ts'
import type { ChecksOf } from '../ports/check-options.ts'
import { anything, callable, count, listOf, nested, oneOf, storedMs, waitedMs } from '../ports/option-kinds.ts'
import type { Reconciler } from '../reconcile/reconciler.ts'

export const workerNames: readonly WorkerName[] = ['sweeper', 'resumer', 'reconciler', 'relay', 'reaper']
export type WorkerName = 'sweeper' | 'resumer' | 'reconciler' | 'relay' | 'reaper'

/** A Latchkey, as far as its workers need it. */
export interface WorkersHost<Tx> {
  readonly [engine]: Internals<Tx>
}

export interface WorkersOptions {
  /** Which workers run here. Default: all that have something to do. Narrow it to give some of them processes of their own. */
  readonly only?: readonly WorkerName[]
  readonly sweeper?: {
    /** The longest pause between two sweeps. Default 60 s: a dead lease is resolved within the lease and this. */
    readonly everyMs?: number
    /** Rows a sweep moves at most before it looks again. Default 100. */
    readonly batch?: number
  }
  readonly resumer?: {
    /** The longest pause between two looks for work. Default 5 s. Shorten it where clients wait for resumed work. */
    readonly everyMs?: number
    /** Rows worked on at once in this process. Default 8, or half of the pool where that is less. Raise it with the pool. */
    readonly concurrency?: number
  }
  /** From `createReconciler(latchkey)`: what is unknown is asked about, told and compared as it says. Absent: no reconciler runs here. */
  readonly reconcile?: Reconciler
  readonly reconciler?: {
    /** The longest pause between two looks for what is due. Default 5 s. */
    readonly everyMs?: number
    /** Questions to providers that are open at once in this process. Default 8, or half of the pool where that is less. */
    readonly concurrency?: number
  }
  /** Where the messages of the outbox go, by topic; `*` is for all other topics. Absent: no relay runs here. */
  readonly targets?: Readonly<Record<string, Target>>
  readonly relay?: Partial<RelayPolicy> & {
    /** The longest pause once no lane has anything to do. Default 500 ms: what a message waits without a hint. */
    readonly everyMs?: number
  }
  readonly reaper?: {
    /** The longest pause once nothing is expired. Default 60 s; an expired row counts as absent meanwhile. */
    readonly everyMs?: number
    /** Rows deleted in one statement. Default 1,000. */
    readonly batch?: number
    /** The pause between two full batches. Default 250 ms, which leaves the disk to live traffic. */
    readonly pauseMs?: number
    /** How long delivered messages are kept, with what the downstream called them. Default 24 h. */
    readonly keepDeliveredMs?: number
    /**
     * How long webhooks are remembered by their id. Default 7 days: senders retry for about three, and a message that was forgotten is
     * new again. Under 4 days is refused.
     */
    readonly keepReceivedMs?: number
  }
  /**
   * Hints that there is work, from LISTEN or from your own code: called at `start` with a function that wakes one worker or all,
   * returns what ends it. Polling goes on regardless; hints only make it sooner, and many of them are one turn.
   */
  readonly hint?: (wake: (worker?: WorkerName) => void) => () => void
}

/** The options of one worker. */
type Of<Name extends keyof WorkersOptions> = ChecksOf<NonNullable<WorkersOptions[Name]>>

const sweeper: Of<'sweeper'> = { everyMs: waitedMs, batch: count }
const resumer: Of<'resumer'> = { everyMs: waitedMs, concurrency: count }
const reconciler: Of<'reconciler'> = { everyMs: waitedMs, concurrency: count }
const relay: Of<'relay'> = { ...policyChecks, everyMs: waitedMs }
const reaper: Of<'reaper'> = {
  everyMs: waitedMs,
  batch: count,
  pauseMs: waitedMs,
  keepDeliveredMs: storedMs,
  keepReceivedMs: storedMs,
}

export const workersChecks: ChecksOf<WorkersOptions> = {
  only: listOf(oneOf(...workerNames)),
  sweeper: nested(sweeper),
  resumer: nested(resumer),
  // What createReconciler gave.
  reconcile: anything,
  reconciler: nested(reconciler),
  targets: targetsCheck,
  relay: nested(relay),
  reaper: nested(reaper),
  hint: callable,
}

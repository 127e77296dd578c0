/** Which workers run here, and how often. */
import type { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import { policyChecks, type RelayPolicy, targetsCheck } from '../outbox/policy.ts'
import type { Target } from '../ports/target.ts'
import type { ChecksOf } from '../ports/check-options.ts'
import { callable, count, having, listOf, nested, oneOf, storedMs, waitedMs } from '../ports/option-kinds.ts'
import type { Reconciler } from '../reconcile/reconciler.ts'

export const workerNames: readonly WorkerName[] = ['sweeper', 'resumer', 'reconciler', 'relay', 'reaper', 'auditor']
export type WorkerName = 'sweeper' | 'resumer' | 'reconciler' | 'relay' | 'reaper' | 'auditor'

/** What workers use of a Latchkey. */
export interface WorkersHost<Tx> {
  readonly [engine]: Internals<Tx>
}

export interface WorkersOptions {
  /** Which workers run here. Default: all that have something to do. Set it to run some of them in processes of their own. */
  readonly only?: readonly WorkerName[]
  readonly sweeper?: {
    /** The longest pause between two sweeps. Default 60 s: an expired lease is resolved within this time. */
    readonly everyMs?: number
    /** The most rows that one sweep moves. Default 100. */
    readonly batch?: number
  }
  readonly resumer?: {
    /** The longest pause between two searches for work. Default 5 s. Shorten it where clients wait for resumed work. */
    readonly everyMs?: number
    /** Rows resumed at once in this process. Default 8, or half of the pool where that is less. Raise it with the pool. */
    readonly concurrency?: number
  }
  /** Absent: no reconciler runs here. */
  readonly reconciler?: {
    /** From `createReconciler(latchkey)`: its look-ups and ledgers settle what is unknown. */
    readonly use: Reconciler
    /** The longest pause between two searches for what is due. Default 5 s. */
    readonly everyMs?: number
    /** Look-ups that run at once in this process. Default 8, or half of the pool where that is less. */
    readonly concurrency?: number
  }
  /** Absent: no relay runs here. */
  readonly relay?: Partial<RelayPolicy> & {
    /** Where the messages of the outbox go, by topic; `*` is for all other topics. */
    readonly targets: Readonly<Record<string, Target>>
    /** The longest pause once no lane has anything to do. Default 500 ms: the longest that a message waits without a hint. */
    readonly everyMs?: number
  }
  readonly reaper?: {
    /** The longest pause once nothing is expired. Default 60 s; expired rows count as absent until then. */
    readonly everyMs?: number
    /** Rows deleted in one statement. Default 1,000. */
    readonly batch?: number
    /** The pause between two full batches. Default 250 ms, which leaves disk time to live traffic. */
    readonly pauseMs?: number
    /** How long delivered messages are retained, with their downstream ids. Default 24 h. */
    readonly keepDeliveredMs?: number
    /**
     * How long the ids of received webhooks are retained. Default 7 days: senders retry for about three, and a message whose id was deleted
     * counts as new. Less than 4 days is refused.
     */
    readonly keepReceivedMs?: number
  }
  /** Needs `audit` of `createLatchkey`: hands the lines of the trail to its sink, or deletes those past their retention. */
  readonly auditor?: {
    /** The longest pause when nothing is left to do. Default 5 s. */
    readonly everyMs?: number
    /** The most lines of one turn. Default 500. */
    readonly batch?: number
  }
  /**
   * Hints that there is work, from LISTEN or from your own code: called at `start` with a function that wakes one worker or all;
   * returns a function that ends the subscription. Polling continues regardless: hints only make it sooner, and many of them cause one turn.
   */
  readonly hint?: (wake: (worker?: WorkerName) => void) => () => void
}

/** The checks of one worker's options. */
type ChecksFor<Name extends keyof WorkersOptions> = ChecksOf<NonNullable<WorkersOptions[Name]>>

const sweeper: ChecksFor<'sweeper'> = { everyMs: waitedMs, batch: count }
const resumer: ChecksFor<'resumer'> = { everyMs: waitedMs, concurrency: count }
const reconciler: ChecksFor<'reconciler'> = {
  use: having('what createReconciler returned, an object', 'register', 'onSettled'),
  everyMs: waitedMs,
  concurrency: count,
}
const relay: ChecksFor<'relay'> = { ...policyChecks, targets: targetsCheck, everyMs: waitedMs }
const reaper: ChecksFor<'reaper'> = {
  everyMs: waitedMs,
  batch: count,
  pauseMs: waitedMs,
  keepDeliveredMs: storedMs,
  keepReceivedMs: storedMs,
}

const auditor: ChecksFor<'auditor'> = { everyMs: waitedMs, batch: count }

export const workersChecks: ChecksOf<WorkersOptions> = {
  only: listOf(oneOf(...workerNames)),
  sweeper: nested(sweeper),
  resumer: nested(resumer),
  reconciler: nested(reconciler),
  relay: nested(relay),
  reaper: nested(reaper),
  auditor: nested(auditor),
  hint: callable,
}

/**
 * A turn of the reconciler applies stored evidence, starts the look-ups and ledger comparisons that are due, and observes the gauges. Look-ups
 * and comparisons may outlast their turn; each is fenced in the store.
 */
import { anyEnd } from '../ports/clock.ts'
import { applyKept } from './evidence.ts'
import type { NamedLedger } from './ledgers/compare.ts'
import { beginComparison } from './ledgers/run.ts'
import { type LookUpTask, lookUp } from './look-up.ts'
import type { ReconcilerContext } from './host.ts'
import type { Registered } from './registration.ts'
import { type Gauges, gauges } from './gauges.ts'

export interface ReconcilerWork {
  turn(signal: AbortSignal): Promise<'more' | 'idle'>
  /** Resolves when no look-up and no comparison runs. */
  outstanding(): Promise<unknown>
  /** `drain`: ends comparisons and leaves look-ups to finish. `stop`: ends both. The next turn starts afresh. */
  ending(how: 'drain' | 'stop'): void
}

export interface WorkOptions {
  /** Look-ups that run at once in this process. */
  readonly concurrency: number
  readonly registered: ReadonlyMap<string, Registered>
  readonly ledgers: ReadonlyMap<string, NamedLedger>
}

/** One commit each: a backlog after a long stop takes a few turns. */
const keptPerTurn = 100
/** Added to a look-up's deadline, so that its verdict is stored and applied, or the next look-up is scheduled, while the lease lasts. */
const leaseMarginMs = 15_000
/** How long a turn waits for a look-up to end when all slots are taken. */
const slotWaitMs = 1_000
/** Another process may have failed or been drained: a ledger that is not due is checked again after this. */
const checkLedgerMsMax = 60_000

export function reconcilerWork(context: ReconcilerContext, options: WorkOptions): ReconcilerWork {
  const ends = { lookUps: new AbortController(), comparisons: new AbortController() }
  const lookUps = dueLookUps(context, options, () => ends.lookUps.signal)
  const comparisons = scheduledComparisons(context, options.ledgers, () => ends.comparisons.signal)
  const observed: Gauges = gauges(context, options)
  return {
    async turn(signal) {
      if (context.closing.aborted) return 'idle'
      if (ends.lookUps.signal.aborted) ends.lookUps = new AbortController()
      if (ends.comparisons.signal.aborted) ends.comparisons = new AbortController()
      const moreKept = await applyKept(context, keptPerTurn)
      await comparisons.begin(signal)
      await observed.observe()
      const moreLookUps = await lookUps.begin(signal)
      return moreKept || moreLookUps ? 'more' : 'idle'
    },
    outstanding: () => Promise.all([lookUps.outstanding(), comparisons.outstanding()]),
    ending(how) {
      ends.comparisons.abort(new Error('the reconciler is stopping'))
      if (how === 'stop') ends.lookUps.abort(new Error('the reconciler is stopping'))
    },
  }
}

interface DueWork<Result> {
  begin(signal: AbortSignal): Promise<Result>
  outstanding(): Promise<unknown>
}

function dueLookUps(
  context: ReconcilerContext,
  { concurrency, registered }: WorkOptions,
  stopping: () => AbortSignal,
): DueWork<boolean> {
  const { store, clock, call, telemetry } = context
  const open = new Map<string, Set<Promise<void>>>()
  const all = () => [...open.values()].flatMap(ones => [...ones])
  let first = 0

  function ask(one: Registered, { lookup, sinceMs }: Pick<LookUpTask, 'lookup' | 'sinceMs'>): void {
    const ours = open.get(one.operation) ?? new Set()
    open.set(one.operation, ours)
    const asked: Promise<void> = lookUp(context, { registered: one, lookup, sinceMs, stopping: stopping() })
      .catch((error: unknown) => {
        const attributes = { operation: one.operation, identity: lookup.id, detail: 'store' }
        telemetry.count('reconcile.failed', attributes)
        telemetry.report('the result of a look-up could not be stored; it will be retried', { ...attributes, error })
      })
      .finally(() => void ours.delete(asked))
    ours.add(asked)
  }

  /** Returns whether there may be more than it had slots for. A provider that hangs leaves slots for the others. */
  async function beginFor(one: Registered): Promise<boolean> {
    const { operation, backoffMs, timeoutMs } = one
    const share = Math.max(1, Math.floor(concurrency / registered.size))
    const free = Math.min(share - (open.get(operation)?.size ?? 0), concurrency - all().length)
    if (free <= 0) return true
    const options = { operation, firstInMs: backoffMs[0] ?? 0, leaseMs: timeoutMs + leaseMarginMs, limit: free }
    const sinceMs = clock.monotonicMs()
    const due = await call('look-ups', () => store.reconciliation.lookups(options))
    for (const lookup of due) ask(one, { lookup, sinceMs })
    return due.length >= free
  }

  return {
    async begin(signal) {
      const turn = [...registered.values()]
      first = turn.length === 0 ? 0 : (first + 1) % turn.length
      let more = false
      for (const one of [...turn.slice(first), ...turn.slice(0, first)]) {
        if (signal.aborted || context.closing.aborted) return false
        more = (await beginFor(one)) || more
      }
      if (more) await anyEnd(all(), { clock: context.clock, delayMs: slotWaitMs, signal })
      return more
    },
    outstanding: () => Promise.all(all()),
  }
}

function scheduledComparisons(
  context: ReconcilerContext,
  ledgers: WorkOptions['ledgers'],
  ending: () => AbortSignal,
): DueWork<void> {
  const running = new Map<string, Promise<unknown>>()
  const checkAtMs = new Map<string, number>()
  return {
    async begin(signal) {
      for (const ledger of ledgers.values()) {
        const { name, everyMs } = ledger
        if (running.has(name) || (checkAtMs.get(name) ?? 0) > context.clock.monotonicMs()) continue
        if (signal.aborted || context.closing.aborted) return
        const begun = await beginComparison(context, { ledger, everyMs, ending: ending() })
        if (begun.kind === 'not-due') {
          checkAtMs.set(name, context.clock.monotonicMs() + Math.min(begun.inMs, checkLedgerMsMax))
          continue
        }
        // A failure was reported already.
        const over = () => void running.delete(name)
        running.set(name, begun.report.then(over, over))
      }
    },
    outstanding: () => Promise.all(running.values()),
  }
}

/**
 * The turns of the reconciler: kept evidence is applied, look-ups that are due are asked, ledgers that are due are compared, and what is
 * unknown is counted. Questions and comparisons outlast their turn; each is fenced in the store.
 */
import { sleep } from '../ports/clock.ts'
import { applyKept } from './evidence.ts'
import type { NamedLedger } from './ledgers/compare.ts'
import { beginComparison } from './ledgers/run.ts'
import { type Looking, lookUp } from './look-up.ts'
import type { Parts } from './host.ts'
import type { Registered } from './registration.ts'
import { type Gauges, gauges } from './gauges.ts'

export interface ReconcilerWork {
  turn(signal: AbortSignal): Promise<'more' | 'idle'>
  /** Resolves when no question is open and no comparison runs. */
  outstanding(): Promise<unknown>
  /** `drain`: comparisons end, questions are waited for. `stop`: both end. The next turn begins anew. */
  ending(how: 'drain' | 'stop'): void
}

export interface WorkOptions {
  /** Questions open at once in this process. */
  readonly concurrency: number
  readonly registered: ReadonlyMap<string, Registered>
  readonly ledgers: ReadonlyMap<string, NamedLedger>
}

/** One commit each: a backlog after a long stop is worked off in a few turns. */
const keptPerTurn = 100
/** Beyond a look-up's deadline: its verdict is kept and applied, or its next look-up is written, while it is still ours. */
const leaseMarginMs = 15_000
/** How long a turn waits for a question to end when all are open. */
const slotWaitMs = 1_000
/** Another process may have failed or been drained: a ledger that is not due is asked for again after this. */
const askLedgerMsMax = 60_000

export function reconcilerWork(parts: Parts, options: WorkOptions): ReconcilerWork {
  const ends = { questions: new AbortController(), comparisons: new AbortController() }
  const looks = questions(parts, options, () => ends.questions.signal)
  const comparisons = scheduledComparisons(parts, options.ledgers, () => ends.comparisons.signal)
  const watched: Gauges = gauges(parts, options)
  return {
    async turn(signal) {
      if (parts.closing.aborted) return 'idle'
      if (ends.questions.signal.aborted) ends.questions = new AbortController()
      if (ends.comparisons.signal.aborted) ends.comparisons = new AbortController()
      const moreKept = await applyKept(parts, keptPerTurn)
      await comparisons.begin(signal)
      await watched.tell()
      const moreLooks = await looks.begin(signal)
      return moreKept || moreLooks ? 'more' : 'idle'
    },
    outstanding: () => Promise.all([looks.outstanding(), comparisons.outstanding()]),
    ending(how) {
      ends.comparisons.abort(new Error('the worker ends'))
      if (how === 'stop') ends.questions.abort(new Error('the worker ends'))
    },
  }
}

interface Begins<Result> {
  begin(signal: AbortSignal): Promise<Result>
  outstanding(): Promise<unknown>
}

function questions(
  parts: Parts,
  { concurrency, registered }: WorkOptions,
  stopping: () => AbortSignal,
): Begins<boolean> {
  const { store, clock, call, telemetry } = parts
  const open = new Map<string, Set<Promise<void>>>()
  const all = () => [...open.values()].flatMap(ones => [...ones])
  let first = 0

  function ask(one: Registered, { lookup, sinceMs }: Pick<Looking, 'lookup' | 'sinceMs'>): void {
    const ours = open.get(one.operation) ?? new Set()
    open.set(one.operation, ours)
    const asked: Promise<void> = lookUp(parts, { registered: one, lookup, sinceMs, stopping: stopping() })
      .catch((error: unknown) => {
        const attributes = { operation: one.operation, identity: lookup.id, detail: 'store' }
        telemetry.count('reconcile.failed', attributes)
        telemetry.report('the end of a look-up could not be written: it is asked again', { ...attributes, error })
      })
      .finally(() => void ours.delete(asked))
    ours.add(asked)
  }

  /** Says whether there may be more than it had room for. A provider that hangs leaves room for the others. */
  async function begin(one: Registered): Promise<boolean> {
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
        if (signal.aborted || parts.closing.aborted) return false
        more = (await begin(one)) || more
      }
      if (more) await oneOf(parts, all(), signal)
      return more
    },
    outstanding: () => Promise.all(all()),
  }
}

async function oneOf({ clock }: Parts, works: readonly Promise<void>[], signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  const end = () => over.abort()
  signal.addEventListener('abort', end, { once: true })
  await Promise.race([...works, sleep(clock, slotWaitMs, over.signal)])
  signal.removeEventListener('abort', end)
  end()
}

function scheduledComparisons(parts: Parts, ledgers: WorkOptions['ledgers'], ending: () => AbortSignal): Begins<void> {
  const running = new Map<string, Promise<unknown>>()
  const askAtMs = new Map<string, number>()
  return {
    async begin(signal) {
      for (const ledger of ledgers.values()) {
        const { name, everyMs } = ledger
        if (running.has(name) || (askAtMs.get(name) ?? 0) > parts.clock.monotonicMs()) continue
        if (signal.aborted || parts.closing.aborted) return
        const begun = await beginComparison(parts, { ledger, everyMs, ending: ending() })
        if (begun.kind === 'not-due') {
          askAtMs.set(name, parts.clock.monotonicMs() + Math.min(begun.inMs, askLedgerMsMax))
          continue
        }
        // Its failure was told.
        const over = () => void running.delete(name)
        running.set(name, begun.report.then(over, over))
      }
    },
    outstanding: () => Promise.all(running.values()),
  }
}

/** What Latchkey reports about itself. Never a raw key: identities appear as their hash. A telemetry that throws changes nothing. */

export type Metric =
  | 'reserve.created'
  | 'reserve.replay'
  | 'reserve.in_progress'
  | 'reserve.key_misuse'
  | 'reserve.failed_retry'
  | 'reserve.unknown'
  | 'reserve.after_expiry'
  | 'store.error'
  | 'zombie_key'
  | 'ttl_pruned'
  | 'takeover'
  | 'claim_lost'
  | 'outcome.store_failed'
  /** Counted: a request over a limit of its scope. `detail`: which one. */
  | 'limit.refused'
  /** Counted: the store did not lease tokens of a shared limit, so that the process limits by itself. */
  | 'limit.unshared'
  | 'parked'
  | 'unprotected'
  /** Counted: a look-up was granted, evidence settled a row, a look-up or a comparison failed. `detail`: the source, or why. */
  | 'reconcile.scheduled'
  | 'reconcile.resolved'
  | 'reconcile.failed'
  /** Counted: a webhook was refused or belongs to nothing here. `detail`: why. */
  | 'reconcile.refused'
  /** Observed by operation: rows that are unknown now, how long the oldest is (ms), those that no look-up is registered for. */
  | 'unknown.count'
  | 'unknown.oldest_age'
  | 'unknown.without_lookup'
  /** Observed at the end of a ledger comparison, by its name in `detail`; the last: how long ago one ended (ms). */
  | 'ledger.missing'
  | 'ledger.extra'
  | 'ledger.different'
  | 'ledger.last_run_age'
  | 'execution.duration'
  | 'lease.used_ratio'
  /** Counted: a turn of a worker has ended, or has failed. `detail`: which worker. One that is silent counts nothing. */
  | 'worker.turn'
  | 'worker.failure'
  /** Observed by the sweeper: rows that are parked now, counted up to 200. */
  | 'parked.rows'
  /** Observed by the relay: the age of the oldest message that waits (ms), how many wait, are held back, are parked. */
  | 'outbox.oldest_age'
  | 'outbox.waiting'
  | 'outbox.held_back'
  | 'outbox.parked'
  /** Observed by the sweeper: messages of consumers that are parked now and wait for an operator, counted up to 100,000. */
  | 'inbox.parked'
  /** Observed when it changes: 1 while the circuit of the store is open and calls are refused, else 0. `detail`: the store. */
  | 'circuit.open'
  /** Observed by the store, whose name is the `detail`: see `StoreObserver`. */
  | 'batch.size'
  | 'batch.wait'
  | 'pool.wait'
  /** Counted: a batch gave up waiting for a row's lock, and its calls were sent one by one. */
  | 'lock_timeout'
  /** Counted: another server answers than before, or the same one was started again. `detail`: the store. */
  | 'store.failover'

export interface Attributes {
  readonly operation?: string
  /** Hash of scope, operation and key: safe to log. */
  readonly identity?: string
  /** Of a duplicate or a reused key: whose client it is. As it stands in the row. Too varied for a label. */
  readonly scope?: string
  readonly detail?: string
}

/** What is traced: the claim of a row, the handler, and the write of its end. */
export type SpanName = 'claim' | 'handler' | 'complete'

export interface Telemetry {
  /** The counter of this metric rises by one. The exporters name it `api.idempotency.<metric>.count`. */
  count(metric: Metric, attributes: Attributes): void
  /** One observation of a duration (ms) or a ratio. */
  observe(metric: Metric, value: number, attributes: Attributes): void
  /** Something a person may want in the log, with its error. */
  report(message: string, attributes: Attributes & { readonly error?: unknown }): void
  /**
   * Calls `work` at once, inside a span that ends when its promise does; that resolves with the error to mark the span with, or with
   * undefined, and never rejects. Absent: nothing is traced.
   */
  trace?(span: SpanName, attributes: Attributes, work: () => Promise<unknown>): void
}

/** Whether observations go anywhere. Where they do not, nothing is measured or queried for them. */
export function isObserved(telemetry: Telemetry): boolean {
  return telemetry.observe !== silentTelemetry.observe
}

/** For those who want no reports at all. Without any telemetry, reports go to `console.warn`. */
export const silentTelemetry: Telemetry = { count() {}, observe() {}, report() {} }

const armed: unique symbol = Symbol.for('latchkey.faultPoint')

// Only this one member of the global object is used here.
const place = globalThis as { readonly [armed]?: unknown }

/**
 * Reports a named moment to a test, which may kill the process there. Nothing happens unless a test has put a function under the symbol.
 * `moment` is apart from the name so that no text is built when none is armed.
 */
export function faultPoint(name: string, moment?: 'before' | 'after'): void {
  const arm = place[armed]
  if (typeof arm === 'function') arm(moment === undefined ? name : `${name}:${moment}`)
}

/** An observer that throws never changes an outcome. Without a closure for each call: every request makes several. */
export function harmless(telemetry: Telemetry): Telemetry {
  if (telemetry === silentTelemetry) return telemetry
  return {
    // Those that drop everything stay what they are, so that they are known.
    count: telemetry.count === silentTelemetry.count ? telemetry.count : harmlessCount(telemetry),
    observe: isObserved(telemetry) ? harmlessObserve(telemetry) : telemetry.observe,
    report(message, attributes) {
      try {
        disregard(telemetry.report(message, attributes))
      } catch {
        // There is no one to report a failing observer to.
      }
    },
    ...(telemetry.trace === undefined ? {} : { trace: harmlessTrace(telemetry) }),
  }
}

function harmlessCount(telemetry: Telemetry): Telemetry['count'] {
  return (metric, attributes) => {
    try {
      disregard(telemetry.count(metric, attributes))
    } catch {
      // As above.
    }
  }
}

function harmlessObserve(telemetry: Telemetry): Telemetry['observe'] {
  return (metric, value, attributes) => {
    try {
      disregard(telemetry.observe(metric, value, attributes))
    } catch {
      // As above.
    }
  }
}

function harmlessTrace(telemetry: Telemetry): NonNullable<Telemetry['trace']> {
  return (span, attributes, work) => {
    try {
      disregard(telemetry.trace?.(span, attributes, work))
    } catch {
      // As above. Who called sees whether the work was begun.
    }
  }
}

/** By operation, and by metric or by a part of one. */
export type Counts = Map<string, Map<string, number>>

export type AddCount = (operation: string, metric: string) => void

/** Operations are declared by name, so that there are few. A process that has more of them counts the rest together. */
const operationsMax = 1_000
const others = 'others'

/** Counts into `counts`. `onFirst`: they were empty until now. */
export function counterOf(counts: Counts, onFirst: () => void): AddCount {
  return (operation, metric) => {
    if (counts.size === 0) onFirst()
    const name = counts.has(operation) || counts.size < operationsMax ? operation : others
    const ofOperation = counts.get(name) ?? new Map<string, number>()
    counts.set(name, ofOperation.set(metric, (ofOperation.get(metric) ?? 0) + 1))
  }
}

/** Counts the `wanted` metrics with `add` on their way to `telemetry`. */
export function counting(telemetry: Telemetry, wanted: ReadonlySet<Metric>, add: AddCount): Telemetry {
  return {
    ...telemetry,
    count(metric, attributes) {
      if (wanted.has(metric)) add(attributes.operation ?? '', metric)
      telemetry.count(metric, attributes)
    },
  }
}

/** An observer typed as returning nothing may still return a promise. */
function disregard(result: unknown): void {
  if (result !== undefined) Promise.resolve(result).catch(() => {})
}

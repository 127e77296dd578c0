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

export interface Attributes {
  readonly operation?: string
  /** Hash of scope, operation and key: safe to log. */
  readonly identity?: string
  /** Of a reused key: whose client it is. As it stands in the row. */
  readonly scope?: string
  readonly detail?: string
}

export interface Telemetry {
  /** `api.idempotency.<metric>` rises by one. */
  count(metric: Metric, attributes: Attributes): void
  /** One observation of a duration (ms) or a ratio. */
  observe(metric: Metric, value: number, attributes: Attributes): void
  /** Something a person may want in the log, with its error. */
  report(message: string, attributes: Attributes & { readonly error?: unknown }): void
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

/** An observer that throws never changes an outcome. */
export function harmless(telemetry: Telemetry): Telemetry {
  if (telemetry === silentTelemetry) return telemetry
  return {
    count: (metric, attributes) => guard(() => telemetry.count(metric, attributes)),
    observe: (metric, value, attributes) => guard(() => telemetry.observe(metric, value, attributes)),
    report: (message, attributes) => guard(() => telemetry.report(message, attributes)),
  }
}

function guard(observe: () => unknown): void {
  try {
    const result = observe()
    // An observer typed as returning nothing may still return a promise.
    if (result !== undefined) Promise.resolve(result).catch(() => {})
  } catch {
    // There is no one to report a failing observer to.
  }
}

/** What Latchkey tells about itself. Never a raw key: identities appear as their hash. A telemetry that throws changes nothing. */

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
  | 'parked'
  | 'unprotected'
  | 'execution.duration'
  | 'lease.used_ratio'

export interface Attributes {
  readonly operation?: string
  /** Hash of scope, operation and key: safe to log. */
  readonly identity?: string
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

export const silentTelemetry: Telemetry = { count() {}, observe() {}, report() {} }

/** When a ledger may be compared again. */

export interface LedgerTimes {
  readonly beganAtMs: number
  /** The lease of the run under way. Absent: no run is. */
  readonly heldUntilMs: number | undefined
  /** The last run failed: it may be repeated from here on. */
  readonly retryAtMs: number | undefined
}

/** Zero or less: now. A failed run is repeated sooner than `everyMs`, and never later. */
export function ledgerDueInMs(times: LedgerTimes, everyMs: number, nowMs: number): number {
  const { beganAtMs, heldUntilMs = 0, retryAtMs = Infinity } = times
  return Math.ceil(Math.max(heldUntilMs, Math.min(beganAtMs + everyMs, retryAtMs)) - nowMs)
}

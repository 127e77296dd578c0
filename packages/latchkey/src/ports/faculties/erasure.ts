/**
 * Erasing what is stored of one tenant.
 *
 * A mark on the scope says that everything of it that began before the mark is to go. What has ended goes at once, in batches; what is still open goes
 * when it has ended: every `reap` continues the erasures that are marked. The mark loses its scope when nothing is left, and only its hash stays.
 */

export interface ErasedBatch {
  /** Rows, with their outcome, input, steps and evidence. */
  readonly rows: number
  /** Messages of the outbox that were delivered. */
  readonly messages: number
  /** Entries of the audit whose texts were blanked. */
  readonly auditTexts: number
  /** Lines of the trail that lost their scope and their fingerprint. */
  readonly auditLines: number
}

/** Nothing is left that has ended. */
export function isEmpty({ rows, messages, auditTexts, auditLines }: ErasedBatch): boolean {
  return rows + messages + auditTexts + auditLines === 0
}

/** Counted up to 100,000 each. */
export interface ErasureLeft {
  /** Rows that have not ended: in progress, pending, unknown, or parked. */
  readonly openRows: number
  /** Messages that were not delivered yet, or are parked. */
  readonly waitingMessages: number
}

export interface Erasure {
  /** Sets the mark to now. May be repeated. */
  mark(scope: string): Promise<void>
  /**
   * One batch of a marked scope, at most `limit` of each. A row is erased if it began before the mark and is `completed`, or `failed_retryable` and
   * neither parked nor with an effect in doubt. All zero: nothing is left that has ended.
   */
  erase(options: { readonly scope: string; readonly limit: number }): Promise<ErasedBatch>
  /** What has not ended of a marked scope. If nothing is left, the mark ends here. */
  left(scope: string): Promise<ErasureLeft>
}

/**
 * What the limits of a scope need of a store: tokens that all processes share, and how much of a scope is stored.
 *
 * A bucket holds `perMinute` tokens, is full at first, and fills evenly by the store's clock. A process leases some of them at a time and spends them
 * without asking again.
 */

export interface Tokens {
  /** A uuid: a hash of what it limits. */
  readonly bucket: string
  readonly perMinute: number
  readonly tokens: number
}

export interface Leased {
  /** Whole tokens, from none to as many as were asked for. */
  readonly granted: number
  /** When the bucket will have another one. Zero: it has. */
  readonly nextInMs: number
}

/** The rows of a scope. */
export interface ScopeRows {
  readonly scope: string
  /** Absent: of every operation. */
  readonly operation?: string | undefined
}

export interface Quotas {
  /** Fills the bucket up to now, then takes as many tokens as it has, at most those asked for: atomically, however many ask at once. */
  lease(asked: Tokens): Promise<Leased>
  /** Tokens that were leased and are not needed. The bucket never holds more than `perMinute`. */
  giveBack(unused: Tokens): Promise<void>
  /** Deletes at most `limit` buckets that are full: a bucket that is not there is full as well. Returns how many. */
  prune(options: { readonly limit: number }): Promise<number>
  /**
   * How many rows are not completed: pending, in progress, failed and free for a retry, or unknown. Counted up to `max`. The store bounds how many
   * rows it reads, so that of a scope with very many of them some may be missed.
   */
  openKeys(rows: ScopeRows & { readonly max: number }): Promise<number>
  /** The bytes of their outcomes and inputs, as they are stored. Of very many rows some are measured, and the rest is estimated. */
  storedBytes(rows: ScopeRows): Promise<number>
}

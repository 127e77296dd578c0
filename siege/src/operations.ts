/** The application's operations. Names are paths, so that an enemy can compute the identity of a row. */
export const operations = {
  /** Guarded, `hold`. */
  transfers: 'transfers.create',
  /** Guarded, `rerun`, and run without protection when the store is down: it never is. */
  hits: 'hits.create',
  atomic: 'orders.create',
  phased: 'payments.create',
  deferred: 'exports.create',
  /** Guarded; its handler never reads the body. */
  uploads: 'uploads.create',
  /** Guarded; its answer is larger than what is stored. */
  reports: 'reports.create',
} as const

export type Route = keyof typeof operations

/** The answer of every handler, of any kind. */
export interface Done {
  readonly account: string
  readonly id: string
  readonly nonce: string
}

/** What the application offers. Names are paths, so that an enemy can work out the identity of a row. */
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
} as const

export type Route = keyof typeof operations

/** What every handler answers, whichever kind it is. */
export interface Done {
  readonly account: string
  readonly id: string
  readonly nonce: string
}

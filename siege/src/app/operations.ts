/** The application's operations, and which of them a store carries. Names are paths, so that an enemy can compute the identity of a row. */
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

export const storeKinds = ['postgres', 'redis', 'tiered'] as const
export type StoreKind = (typeof storeKinds)[number]

/** Those of the routes that the application has: on Redis there are no transactions. */
export function carried<R extends Route>(store: StoreKind, routes: readonly R[]): readonly R[] {
  return store === 'redis' ? routes.filter(route => route !== 'atomic') : routes
}

/** The answer of every handler, of any kind. */
export interface Done {
  readonly account: string
  readonly id: string
  readonly nonce: string
}

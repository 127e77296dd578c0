/** The stores that a run can be about, and what each of them carries. */
import type { Kind } from './history.ts'

export const storeKinds = ['postgres', 'redis', 'tiered'] as const
export type StoreKind = (typeof storeKinds)[number]

/** Of every kind. */
const all: readonly Kind[] = [
  ...(['orders', 'orders', 'orders', 'payments', 'payments', 'payments', 'payments'] as const),
  ...(['transfers', 'payouts', 'refunds', 'refunds', 'refunds'] as const),
]

/** What clients ask for. A kind that is named more often is asked for more often. */
export const kindsOf: Readonly<Record<StoreKind, readonly Kind[]>> = {
  postgres: all,
  tiered: all,
  // Without transactions: no orders.
  redis: [
    ...(['payments', 'payments', 'payments', 'payments', 'transfers', 'transfers', 'transfers'] as const),
    ...(['transfers', 'payouts', 'payouts', 'refunds', 'refunds', 'refunds'] as const),
  ],
}

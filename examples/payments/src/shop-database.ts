/** What the shop keeps, apart from which database keeps it. */
import type { Store } from 'latchkey'

export interface Order {
  readonly id: number
  readonly account: string
  readonly sku: string
}

export interface ShopDatabase<Tx> {
  readonly store: Store<Tx>
  /** One line for the person who started the playground. */
  readonly name: string
  /** Writes through `tx`, so that the order commits with its key or not at all. */
  insertOrder(tx: Tx, order: Omit<Order, 'id'>): Promise<Order>
  orders(account: string): Promise<readonly Order[]>
  close(): Promise<void>
}

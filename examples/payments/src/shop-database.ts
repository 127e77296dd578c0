/** What the shop keeps, apart from which database keeps it. */
import type { Store } from 'latchkey'

export interface Order {
  readonly id: number
  readonly account: string
  readonly sku: string
}

export interface Payment {
  readonly id: number
  readonly account: string
  readonly amount: number
  /** The provider's charge; absent until it is made. */
  readonly charge: string | undefined
}

export interface ShopDatabase<Tx> {
  readonly store: Store<Tx>
  /** One line for the person who started the playground. */
  readonly name: string
  /** Writes through `tx`, so that the order commits with its key or not at all. */
  insertOrder(tx: Tx, order: Omit<Order, 'id'>): Promise<Order>
  orders(account: string): Promise<readonly Order[]>
  insertPayment(tx: Tx, payment: { account: string; amount: number }): Promise<number>
  markCharged(tx: Tx, payment: { id: number; charge: string }): Promise<void>
  payments(account: string): Promise<readonly Payment[]>
  close(): Promise<void>
}

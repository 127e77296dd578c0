/** The shop's data, independent of the database that stores it. */
import type { Store } from 'latchkey'

export interface Order {
  readonly id: number
  readonly account: string
  readonly sku: string
}

/** Money in, from a card provider that recognises keys; or out, to a bank that does not. */
export interface Payment {
  readonly id: number
  readonly account: string
  readonly amount: number
  readonly direction: 'in' | 'out'
  /** The id of Latchkey's row, also recorded in the provider's ledger. */
  readonly reference: string
  /** The provider's charge; null until the shop knows of it. */
  readonly charge: string | null
}

export interface Export {
  readonly id: number
  readonly account: string
  readonly parts: number
  readonly finished: boolean
}

/** A payment in the books of the ledger. Two of one payment would both be there: nothing but Latchkey keeps them apart. */
export interface Booking {
  readonly id: number
  readonly account: string
  readonly amount: number
  readonly direction: 'in' | 'out'
  readonly payment: number
}

export interface ShopDatabase<Tx> {
  readonly store: Store<Tx>
  /** One line for the person who started the playground. */
  readonly name: string
  /** Writes through `tx`, so that the order commits with its key or not at all. */
  insertOrder(tx: Tx, order: Omit<Order, 'id'>): Promise<Order>
  orders(account: string): Promise<readonly Order[]>
  insertPayment(tx: Tx, payment: Omit<Payment, 'id' | 'charge'>): Promise<number>
  markCharged(tx: Tx, payment: { id: number; charge: string }): Promise<void>
  /** After a refusal, so that neither ledger has the payment. */
  removePayment(tx: Tx, id: number): Promise<void>
  payments(account: string): Promise<readonly Payment[]>
  /** All accounts, by ascending reference, a page at a time: the shop's side of a ledger comparison. */
  paymentsAfter(reference: string, limit: number): Promise<readonly Payment[]>
  insertExport(tx: Tx, account: string): Promise<number>
  addExportPart(tx: Tx, id: number): Promise<void>
  finishExport(tx: Tx, id: number): Promise<Export>
  exports(account: string): Promise<readonly Export[]>
  insertBooking(tx: Tx, booking: Omit<Booking, 'id'>): Promise<void>
  bookings(account: string): Promise<readonly Booking[]>
  /** Nobody can write for this long. Resolves when it has begun. */
  pause(ms: number): Promise<void>
  close(): Promise<void>
}

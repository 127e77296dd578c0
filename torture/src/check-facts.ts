/**
 * What is true after a run, whatever anybody was told: the rows of the business tables, the provider's ledger, and the
 * state of Latchkey's own rows as an operator would list them. Plain data, so that a run can be checked again later.
 *
 * Nothing of the checker imports Latchkey: what it could get wrong, the checker must not get wrong with it.
 */
import type { AppEvent, ClientEvent, NemesisEvent, ReceiptEvent } from './history.ts'

export interface BusinessRow {
  readonly id: number
  readonly key: string
}

export interface ReceiptRow {
  readonly account: string
  readonly seq: number
  readonly key: string
}

/** One row of `latchkey.keys`. Its description is the client's key. */
export interface KeyRow {
  readonly key: string
  readonly operation: string
  readonly state: 'pending' | 'in_progress' | 'completed' | 'failed_retryable' | 'unknown'
  readonly parked: boolean
  readonly leaseDead: boolean
  readonly crashes: number
  /** An unknown row is in the list that a reconciler works from. */
  readonly listed: boolean
}

export interface Facts {
  readonly orders: readonly BusinessRow[]
  readonly payments: readonly BusinessRow[]
  readonly transfers: readonly (BusinessRow & { readonly runs: number })[]
  readonly receipts: readonly ReceiptRow[]
  readonly keys: readonly KeyRow[]
  /** Receipts whose message is parked, by key. */
  readonly parkedReceipts: readonly string[]
}

export interface LedgerCharge {
  readonly id: string
  readonly reference?: string
}

export interface Evidence {
  readonly facts: Facts
  readonly charges: readonly LedgerCharge[]
  readonly clients: readonly ClientEvent[]
  readonly apps: readonly AppEvent[]
  readonly nemesis: readonly NemesisEvent[]
  readonly receipts: readonly ReceiptEvent[]
}

export interface Violation {
  readonly kind:
    | 'lost'
    | 'twice'
    | 'unequal-answers'
    | 'misuse-answered'
    | 'charged-though-declined'
    | 'stuck'
    | 'left-in-progress'
    | 'unlisted-unknown'
    | 'receipt-undelivered'
    | 'receipt-from-nowhere'
    | 'receipt-out-of-order'
  readonly key: string
  readonly detail: string
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

/**
 * What is true after a run, whatever clients were told: the rows of the business tables, the provider's ledger, and the
 * state of Latchkey's own rows as an operator would list them. Plain data, so that a run can be checked again later.
 *
 * The checker does not import Latchkey, so that it cannot share its mistakes.
 */
import type { AppEvent, ClientEvent, NemesisEvent, ReceiptEvent, WebhookEvent } from '../history.ts'
import type { StoreKind } from '../store-kind.ts'

export interface BusinessRow {
  readonly id: number
  readonly key: string
}

export interface ReceiptRow {
  readonly account: string
  readonly seq: number
  readonly key: string
}

/** One of Latchkey's rows. Its description is the client's key. */
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

/** A piece of evidence that Latchkey stored. */
export interface Proof {
  readonly key: string
  readonly source: 'webhook' | 'look-up' | 'ledger' | 'late-owner' | 'operator'
  readonly verdict: 'happened' | 'declined' | 'never-happened' | 'unknown'
  /** It settled its row. */
  readonly applied: boolean
  /** When it was stored, by the server's clock. */
  readonly at: number
  /** The epoch of the effect that it is about; null: it is about the whole operation. */
  readonly epoch: number | null
}

/** The settings of the run. */
export interface Terms {
  readonly store: StoreKind
  /** How long "never happened" proves nothing. */
  readonly quarantineMs: number
  /** The provider recognises the keys of payments; of other kinds it never does. */
  readonly dedup: boolean
  readonly webhooks: boolean
}

export interface Facts {
  readonly terms: Terms
  readonly orders: readonly BusinessRow[]
  readonly payments: readonly BusinessRow[]
  readonly refunds: readonly BusinessRow[]
  readonly transfers: readonly (BusinessRow & { readonly runs: number })[]
  readonly receipts: readonly ReceiptRow[]
  readonly keys: readonly KeyRow[]
  readonly proofs: readonly Proof[]
  /** Each time that a row became unknown, by the server's clock. */
  readonly unknowns: readonly { readonly key: string; readonly since: number }[]
  /** Receipts whose message is parked, by key. */
  readonly parkedReceipts: readonly string[]
}

export interface LedgerCharge {
  readonly id: string
  /** The downstream key. */
  readonly key?: string
  /** The client's key and the row's id. */
  readonly reference?: string
}

export interface Evidence {
  readonly facts: Facts
  readonly charges: readonly LedgerCharge[]
  readonly clients: readonly ClientEvent[]
  readonly apps: readonly AppEvent[]
  readonly nemesis: readonly NemesisEvent[]
  readonly receipts: readonly ReceiptEvent[]
  readonly webhooks: readonly WebhookEvent[]
}

export interface Violation {
  readonly kind:
    | 'lost'
    | 'twice'
    | 'unequal-answers'
    | 'misuse-answered'
    | 'charged-though-declined'
    | 'stuck'
    | 'process-died'
    | 'left-in-progress'
    | 'unlisted-unknown'
    | 'unsettled-unknown'
    | 'called-in-doubt'
    | 'believed-too-early'
    | 'charged-though-disproven'
    | 'webhook-believed'
    | 'accepted-twice'
    | 'accepted-without-end'
    | 'shown-to-stranger'
    | 'receipt-undelivered'
    | 'receipt-from-nowhere'
    | 'receipt-out-of-order'
  readonly key: string
  readonly detail: string
}

/** The client's key that a charge was made for. */
export function clientKeyOf({ id, reference }: LedgerCharge): string {
  return reference?.split(' ')[0] ?? id
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

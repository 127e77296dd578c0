/** What the store holds. Everything that changes it does so without an await between its reading and its writing. */
import type { LedgerCounts } from '../../ports/reconciliation.ts'
import type { Notes } from './reconcile/evidence-and-audit.ts'
import type { Row } from './row.ts'

export interface Tables {
  readonly rows: Map<string, Row>
  readonly notes: Notes
  /** Messages by source and ref; they are remembered beyond the rows they speak of. */
  readonly received: Map<string, Received>
  readonly ledgers: Map<string, Ledger>
  now(): number
}

export interface Received {
  readonly atMs: number
  /** Of the sender's clock. */
  readonly signedAtMs: number
}

export interface Ledger {
  readonly run: number
  readonly beganAtMs: number
  /** Present while a run is under way. */
  readonly heldUntilMs: number | undefined
  readonly retryAtMs: number | undefined
  /** Of the last run that came to its end. */
  readonly last: (LedgerCounts & { readonly finishedAtMs: number }) | undefined
}

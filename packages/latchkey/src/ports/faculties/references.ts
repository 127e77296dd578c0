/**
 * Names under which people look for a row: a provider's id, an order number. A reference is stored before the row's end, so that a row whose owner died
 * after the call is found by it as well. It goes with its row.
 */
import type { Claim, OwnerResult } from '../store.ts'

export interface NewReference {
  /** What is searched for: the text, or its keyed hash. */
  readonly index: string
  /** Where `index` is a hash: the text, sealed. */
  readonly sealed: string | undefined
}

export interface StoredReference extends NewReference {
  /** The row's id. */
  readonly id: string
  /** Earlier than the row was created: of an earlier use of the same key. */
  readonly atMs: number
}

export interface References<Tx> {
  /** While the claim is its owner's. One that the row has already is left as it is. */
  add(claim: Claim, references: readonly NewReference[]): Promise<OwnerResult>
  /** In the transaction that records the row. */
  addIn(tx: Tx, id: string, references: readonly NewReference[]): Promise<void>
  /** Rows that have it, newest reference first. */
  find(index: string, options: { readonly limit: number }): Promise<readonly StoredReference[]>
  of(id: string): Promise<readonly StoredReference[]>
}

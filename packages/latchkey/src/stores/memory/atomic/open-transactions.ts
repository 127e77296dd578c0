/** Which open transaction a `tx` belongs to. Shared by everything that is handed one. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { MemoryTx, OpenTransaction } from './transaction.ts'

export interface OpenTransactions {
  add(transaction: OpenTransaction): void
  /** Throws `not-a-transaction` for what this store did not open. */
  of(tx: unknown): OpenTransaction
}

export function openTransactions(): OpenTransactions {
  const known = new WeakMap<MemoryTx, OpenTransaction>()
  // Any object may be asked for in a WeakMap.
  const find = (tx: unknown) => (typeof tx === 'object' && tx !== null ? known.get(tx as MemoryTx) : undefined)
  return {
    add: transaction => void known.set(transaction.tx, transaction),
    of: tx => find(tx) ?? notATransaction('this tx was not opened by this store'),
  }
}

export function notATransaction(reason: string): never {
  throw new LatchkeyError('not-a-transaction', `an open transaction of the memory store is needed: ${reason}`)
}

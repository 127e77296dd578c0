/** Which open transaction a `tx` belongs to. Shared by everything that is handed one. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { OpenTransaction, SqliteTx } from './transaction.ts'

export interface OpenTransactions {
  add(transaction: OpenTransaction): void
  find(tx: object): OpenTransaction | undefined
  /** Throws `not-a-transaction` for anything else. */
  of(tx: unknown): OpenTransaction
}

export function openTransactions(): OpenTransactions {
  const transactions = new WeakMap<SqliteTx, OpenTransaction>()
  // Any object may be asked for in a WeakMap.
  const find = (tx: object) => transactions.get(tx as SqliteTx)
  return {
    add: transaction => void transactions.set(transaction.tx, transaction),
    find,
    of: tx =>
      (typeof tx === 'object' && tx !== null && find(tx)) || notATransaction('this tx was not opened by this store'),
  }
}

export function notATransaction(reason: string): never {
  throw new LatchkeyError('not-a-transaction', `an open transaction on the store's SQLite file is needed: ${reason}`)
}

/** Which open transaction a `tx` belongs to. Shared by everything that is handed one. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Scope, SqliteTx } from './transaction.ts'

export interface Scopes {
  add(scope: Scope): void
  find(tx: object): Scope | undefined
  /** Throws `not-a-transaction` for anything else. */
  of(tx: unknown): Scope
}

export function knownScopes(): Scopes {
  const scopes = new WeakMap<SqliteTx, Scope>()
  // Any object may be asked for in a WeakMap.
  const find = (tx: object) => scopes.get(tx as SqliteTx)
  return {
    add: scope => void scopes.set(scope.tx, scope),
    find,
    of: tx => (typeof tx === 'object' && tx !== null && find(tx)) || noTransaction('this is no tx of this store'),
  }
}

export function noTransaction(reason: string): never {
  throw new LatchkeyError('not-a-transaction', `an open transaction on the store's SQLite file is needed: ${reason}`)
}

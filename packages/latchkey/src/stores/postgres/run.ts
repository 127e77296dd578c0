/** Runs one statement. Every transition of this store is one statement, so its own commit is all the transaction it needs. */
import { LatchkeyError } from '../../ports/errors.ts'
import { queryableOf } from './adopt.ts'
import type { Dialect } from './dialect.ts'
import type { PgQueryable } from './driver.ts'
import { isLostRace, storeError } from './sqlstate.ts'

export type Run = <Row>(text: string, values: readonly unknown[]) => Promise<readonly Row[]>

/** A database whose default isolation is REPEATABLE READ refuses who lost a race; five in a row is not a race any more. */
const triesMax = 5

/** Through the pool, each statement its own commit. Unnamed, so that PgBouncer in transaction mode may stand in between. */
export function autocommit(pool: PgQueryable, schema: string): Run {
  const once = inTransaction(pool, schema)
  return async (text, values) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await once(text, values)
      } catch (error) {
        if (tries === triesMax || !isLostRace(error)) throw error
      }
    }
  }
}

/** On a connection that is in a transaction: never repeated, because after an error nothing but ROLLBACK is allowed. */
export function inTransaction(client: PgQueryable, schema: string): Run {
  return async <Row>(text: string, values: readonly unknown[]) => {
    try {
      const result = await client.query(text, [...values])
      // Each statement names its columns beside the type it is read with.
      return result.rows as readonly Row[]
    } catch (error) {
      throw storeError(error, schema)
    }
  }
}

/** In a transaction of the transactor's, or one that it has adopted. */
export function runIn(tx: unknown, sql: Dialect): Run {
  const queryable = queryableOf(tx)
  if (queryable === undefined) throw new LatchkeyError('invariant', 'a transaction was used before it was adopted')
  return inTransaction(queryable, sql.schema)
}

/** Runs one statement. Every transition of this store is one statement, so its own commit is all the transaction it needs. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { PgQueryable, PgResult } from '../driver.ts'
import type { Dialect } from '../sql/names.ts'
import { queryableOf } from './adopted.ts'
import { isLostRace, storeError } from './errors.ts'

export type RunStatement = <Row>(text: string, values: readonly unknown[]) => Promise<readonly Row[]>

/** A database whose default isolation is REPEATABLE READ refuses the loser of a race; five in a row are not a race any more. */
const triesMax = 5

/** Through the pool, each statement its own commit. Unnamed, so that PgBouncer in transaction mode may stand in between. */
export function autocommit(pool: PgQueryable, schema: string): RunStatement {
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

/** Each statement names its columns beside the type that its rows are read with. */
export function rowsOf<Row>({ rows }: PgResult): readonly Row[] {
  return rows as readonly Row[]
}

/** On a connection that is in a transaction: never repeated, because after an error nothing but ROLLBACK is allowed. */
export function inTransaction(client: PgQueryable, schema: string): RunStatement {
  return async <Row>(text: string, values: readonly unknown[]) => {
    try {
      return rowsOf<Row>(await client.query(text, [...values]))
    } catch (error) {
      throw storeError(error, schema)
    }
  }
}

/** In a transaction of the transactor's, or one that it has adopted. */
export function runIn(tx: unknown, sql: Dialect): RunStatement {
  const queryable = queryableOf(tx)
  if (queryable === undefined) throw notAdopted()
  return inTransaction(queryable, sql.schema)
}

export function notAdopted(): LatchkeyError {
  return new LatchkeyError('invariant', 'a transaction was used before it was adopted')
}

/** Runs one statement. Every transition of this store is one statement, so its own commit is all the transaction it needs. */
import { systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { queryableOf } from './adopted.ts'
import { ignoreErrors } from './ignore-errors.ts'
import type { Dialect } from '../sql/names.ts'
import type { PgClient, PgPool, PgQueryable, PgResult } from '../driver.ts'
import type { Send } from './prepared.ts'
import { isDefiniteRefusal, isLostRace, storeError } from './errors.ts'

export type Run = <Row>(text: string, values: readonly unknown[]) => Promise<readonly Row[]>

/** The same, with all that the server says. */
export type Ask = (text: string, values: readonly unknown[]) => Promise<PgResult>

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

/**
 * Through the pool, once, and given up after `limitMs`: with the connection, because whatever still runs on it would be in the
 * way of the next statement.
 */
export function bounded(pool: PgPool, schema: string, { send, limitMs }: { send: Send; limitMs: number }): Ask {
  return (text, values) =>
    new Promise<PgResult>((resolve, reject) => {
      let late: Error | undefined
      let sent: false | undefined = false
      let giveBack = (_error?: Error) => {}
      const cancel = systemClock.after(limitMs, () => {
        const message = `PostgreSQL did not answer within ${limitMs} ms`
        late = new LatchkeyError('store-unavailable', message, { sent })
        giveBack(late)
        reject(late)
      })
      const work = async () => {
        const client = await pool.connect().catch((error: unknown) => {
          throw notConnected(error, schema)
        })
        giveBack = giveBackOnce(client)
        if (late !== undefined) return giveBack()
        sent = undefined
        const result = await send(client, text, values)
        giveBack()
        resolve(result)
      }
      work()
        .catch((error: unknown) => {
          giveBack(error instanceof Error ? error : new Error(String(error)))
          reject(storeError(error, schema))
        })
        .finally(cancel)
    })
}

/** The statement waited for a connection, and none came: nothing of it was sent. */
function notConnected(error: unknown, schema: string): LatchkeyError {
  const { code, message, cause } = storeError(error, schema)
  return new LatchkeyError(code, message, { cause, sent: false })
}

export function rowsOf(ask: Ask): Run {
  return async <Row>(text: string, values: readonly unknown[]) => {
    const { rows } = await ask(text, values)
    // Each statement names its columns beside the type it is read with.
    return rows as readonly Row[]
  }
}

function giveBackOnce(client: PgClient): (error?: Error) => void {
  const stopIgnoring = ignoreErrors(client)
  let given = false
  return error => {
    if (given) return
    given = true
    stopIgnoring()
    client.release(isDefiniteRefusal(error) ? undefined : error)
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

/**
 * Statements that a session prepares once, where it is ours. Behind PgBouncer in transaction mode each transaction may meet another
 * session, which does not know the name: there they are sent without one.
 */
import { createHash } from 'node:crypto'
import type { PgClient, PgNamingClient } from '../driver.ts'
import { isUnknownStatement, storeError } from './errors.ts'
import { arrayParameter, type Column, parameter, writeArray } from '../sql/columns.ts'
import type { Batch, PreparedStatement } from './flight.ts'
import { rowsOf } from './statement.ts'

/**
 * Named by its text: two versions of this package that share a session must never run each other's statements. The label is for people
 * who look at a session's statements.
 */
export function prepared(label: string, text: string): PreparedStatement {
  return { name: `latchkey_${label}_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text }
}

/** A statement whose parameters are arrays, with an element for each item. */
export function preparedForMany<Item>(
  statement: PreparedStatement,
  columns: readonly Column<Item>[],
): (items: readonly Item[]) => Batch {
  return items => ({
    statement,
    parameterCount: columns.length,
    write(writer) {
      for (const column of columns) {
        const length = writer.later()
        writeArray(writer, column, items)
        writer.lengthAt(length, false)
      }
    },
    values: () => columns.map(column => arrayParameter(column, items)),
  })
}

/** A statement whose parameters are the values of one item. */
export function preparedForOne<Item>(
  statement: PreparedStatement,
  columns: readonly Column<Item>[],
): (item: Item) => Batch {
  return item => ({
    statement,
    parameterCount: columns.length,
    write(writer) {
      for (const column of columns) column.write(writer, item)
    },
    values: () => columns.map(column => parameter(column, item)),
  })
}

export interface Sessions {
  /** Whether statements on this connection may be named. Undefined: the server was not asked yet. */
  isOurs(client: PgClient): boolean | undefined
  findOut(client: PgClient): Promise<boolean>
  /** To be called with every error of a statement that may have had a name. */
  failed(error: unknown): void
}

export function sessions(): Sessions {
  const ours = new WeakMap<PgClient, boolean>()
  let isPossible = true
  return {
    isOurs: client => isPossible && ours.get(client),
    async findOut(client) {
      const found = await isDirect(client)
      ours.set(client, found)
      return found
    },
    failed(error) {
      // The sessions that the pool hands out again are emptied in between. From the next statement on, names are not used.
      if (isUnknownStatement(error)) isPossible = false
    },
  }
}

/** A client behind a pooler was given a process id that is not that of the server process at the other end. */
async function isDirect(client: PgClient): Promise<boolean> {
  if (typeof client.processID !== 'number') return false
  const { rows } = await client.query('select pg_catalog.pg_backend_pid() as pid')
  // The statement above has this one column.
  return Number((rows[0] as { readonly pid: unknown } | undefined)?.pid) === client.processID
}

export type RunPrepared = <Row>(statement: PreparedStatement, values: unknown[]) => Promise<readonly Row[]>

/** On a connection that is in a transaction of ours. */
export function preparedIn(client: PgClient, known: Sessions, schema: string): RunPrepared {
  return async <Row>({ name, text }: PreparedStatement, values: unknown[]) => {
    try {
      const isOurs = known.isOurs(client) ?? (await known.findOut(client))
      return rowsOf<Row>(await (isOurs ? asNaming(client).query({ name, text, values }) : client.query(text, values)))
    } catch (error) {
      known.failed(error)
      throw storeError(error, schema)
    }
  }
}

/** Only `pg` itself shows the process id by which a session is found to be ours, and it takes names. */
export function asNaming(client: PgClient): PgClient & PgNamingClient {
  return client as PgClient & PgNamingClient
}

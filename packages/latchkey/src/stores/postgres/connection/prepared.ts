/**
 * Statements that the server's session keeps, so that it reads and plans them once. Only where the session is ours: behind
 * PgBouncer in transaction mode every transaction may meet another one, which does not know the name.
 */
import { createHash } from 'node:crypto'
import type { PgClient, PgNamingClient, PgResult } from '../driver.ts'
import { isUnknownStatement } from './errors.ts'

export type Send = (client: PgClient, text: string, values: readonly unknown[]) => Promise<PgResult>

export function preparedWherePossible(): Send {
  const direct = new WeakMap<PgClient, boolean>()
  const names = new Map<string, string>()
  let possible = true

  async function findOut(client: PgClient): Promise<boolean> {
    const found = await isDirect(client)
    direct.set(client, found)
    return found
  }

  return async (client, text, values) => {
    const isOurs = possible && (direct.get(client) ?? (await findOut(client)))
    if (!isOurs) return client.query(text, [...values])
    const name = names.get(text) ?? nameOf(text)
    names.set(text, name)
    try {
      // Only `pg` itself tells the number by which the session was found to be ours.
      return await (client as PgClient & PgNamingClient).query({ name, text, values: [...values] })
    } catch (error) {
      // Somebody empties sessions that the pool hands out again. From the next statement on they go without a name.
      if (isUnknownStatement(error)) possible = false
      throw error
    }
  }
}

/** Who is behind a pooler was told a number that is not the one of the server process at the other end. */
async function isDirect(client: PgClient): Promise<boolean> {
  if (typeof client.processID !== 'number') return false
  const { rows } = await client.query('select pg_catalog.pg_backend_pid() as pid')
  // The statement above has this one column.
  return Number((rows[0] as { readonly pid: unknown } | undefined)?.pid) === client.processID
}

/** By the text: two versions of this package that share a session must never run each other's statements. */
function nameOf(text: string): string {
  return `latchkey_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
}

/**
 * One transaction of postgres.js. `sql.begin` is what tells when its connection breaks, and then nothing may be sent any more: postgres.js
 * would send it on the next connection, outside a transaction. The work that `begin` is given never ends. COMMIT or ROLLBACK, sent by us,
 * ends the transaction, and postgres.js takes the connection back when it sees the answer.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import { adapted, type PgClient } from '../driver.ts'
import type { SqlQuery, SqlRoot, SqlScope } from './driver.ts'
import { answerTo, queryOf } from './query.ts'

export interface Scope {
  readonly root: SqlRoot
  readonly scoped: SqlScope
  /** Why nothing more may be sent. */
  readonly over: () => Error | undefined
  /** Noted when the driver reports it with a query, which is before `begin` does. */
  readonly lost: (error: unknown) => void
}

export function beginScope(root: SqlRoot, level: string): Promise<PgClient> {
  return new Promise((resolve, reject) => {
    let lost: Error | undefined
    const lose = (cause: unknown) => void (lost ??= connectionLost(cause))
    root
      .begin(level, scoped => {
        resolve(scopeClient({ root, scoped, over: () => lost, lost: lose }))
        return new Promise(() => {})
      })
      .catch((error: unknown) => {
        lose(error)
        reject(error instanceof Error ? error : connectionLost(error))
      })
  })
}

function scopeClient(scope: Scope): PgClient {
  let hasEnd = false
  const ended = new LatchkeyError('not-a-transaction', 'this transaction has ended')
  let over: Error | undefined
  const own: Scope = { ...scope, over: () => scope.over() ?? over }
  const send = (text: string, values?: unknown[]) => answerTo(guarded(own, queryOf(scope.scoped, text, values)))
  return {
    [adapted]: { scope: own },
    query(text, values) {
      if (text !== 'COMMIT' && text !== 'ROLLBACK') return send(text, values)
      const answer = send(text)
      hasEnd = true
      return answer.finally(() => (over = ended))
    },
    release() {
      // What was refused before its end still has the connection.
      if (!hasEnd) void this.query('ROLLBACK').catch(() => {})
    },
    on: () => {},
    removeListener: () => {},
  }
}

/** Asks again at the moment of sending: a query may be made long before it is awaited. `instead`: what is done in its place. */
export function guarded(
  { over, lost }: Scope,
  query: SqlQuery,
  instead?: (text: string) => Promise<unknown> | undefined,
): SqlQuery {
  const { handler, reject } = query
  query.reject = error => {
    if (isOfConnection(error)) lost(error)
    reject(error)
  }
  query.handler = sent => {
    try {
      const error = over()
      if (error !== undefined) return reject(error)
      const other = instead?.(query.strings.join(' '))
      if (other === undefined) return handler(sent)
      other.then(() => query.resolve([]), reject)
    } catch (error) {
      reject(error)
    }
  }
  return query
}

/** Of the driver or of the socket. Other errors of the driver are about the query, and the connection stays as it is. */
export function isOfConnection(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  return 'syscall' in error || ('code' in error && typeof error.code === 'string' && error.code.startsWith('CONNECT'))
}

function connectionLost(cause: unknown): LatchkeyError {
  return new LatchkeyError('store-unavailable', `the connection of this transaction broke: ${String(cause)}`, { cause })
}

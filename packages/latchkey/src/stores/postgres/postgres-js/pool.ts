/** postgres.js, as the store uses a pool. */
import { LatchkeyError, misconfigured } from '../../../ports/errors.ts'
import { adapted, type PgClient, type PgPool } from '../driver.ts'
import type { SqlQuery, SqlRoot } from './driver.ts'
import { answerTo, asWritten, queryOf } from './query.ts'
import { beginScope } from './scope.ts'

export function postgresJsPool(sql: SqlRoot): PgPool {
  refuseTransforms(sql)
  return {
    options: { max: sql.options.max },
    query: (text, values) => answerTo(queryOf(sql, text, values)),
    connect: async () => clientOf(sql),
    [adapted]: { begin: level => beginScope(sql, level) },
  }
}

function refuseTransforms({ options: { transform } }: SqlRoot): void {
  const rename = transform?.column?.from
  const name = 'locked_until_ms'
  const cure = 'give the store a postgres(…) of its own without it, or use postgres.camel'
  if (rename !== undefined && asWritten(rename(name)) !== name)
    throw misconfigured(`postgresStore: transform.column of this sql renames ${name} to ${rename(name)}: ${cure}`)
  if (transform?.row?.from !== undefined) throw misconfigured(`postgresStore: this sql has a transform.row: ${cure}`)
}

/**
 * For batches, each of which is committed by itself: postgres.js chooses the connections. One that is given up is canceled, so
 * that what it waits for does not hold up the statements that were sent behind it.
 */
function clientOf(sql: SqlRoot): PgClient {
  let last: SqlQuery | undefined
  return {
    [adapted]: {},
    async query(text, values) {
      last = queryOf(sql, text, values)
      try {
        return await answerTo(last)
      } catch (error) {
        throw isBeforeSending(error) ? notSent(error) : error
      }
    },
    release(error) {
      // Not `cancel()`: where the server cannot be reached, that leaves an unhandled rejection.
      if (error !== undefined && error !== false) last?.canceller?.(last).catch(() => {})
    },
    on: () => {},
    removeListener: () => {},
  }
}

/** No connection was made, so nothing was sent. */
function isBeforeSending(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  if ('syscall' in error && (error.syscall === 'connect' || error.syscall === 'getaddrinfo')) return true
  return 'code' in error && (error.code === 'CONNECT_TIMEOUT' || error.code === 'CONNECTION_ENDED')
}

function notSent(cause: unknown): LatchkeyError {
  return new LatchkeyError('store-unavailable', `PostgreSQL failed: ${String(cause)}`, { cause, sent: false })
}

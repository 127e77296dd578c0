/** What `postgresStore` was given to reach the server with. A wrong object is named, with the line to write instead. */
import { shown } from '../../ports/check-options.ts'
import { type LatchkeyError, misconfigured } from '../../ports/errors.ts'
import { wrongObject } from './connection/wrong-objects.ts'
import type { PgPool } from './driver.ts'
import { isPostgresJs, isSqlRoot, type SqlRoot } from './postgres-js/driver.ts'

export type Driver =
  | { readonly pool: PgPool; readonly sql?: undefined }
  | { readonly pool?: undefined; readonly sql: SqlRoot }

interface Given {
  readonly pool?: unknown
  readonly sql?: unknown
}

/** Before the options are checked one by one: an object that is no options at all has none of their names. */
export function checkDriver(options: unknown): Driver {
  const itself = wrongObject(options)
  if (itself !== undefined) throw misconfigured(`postgresStore was given ${itself.what}: write ${itself.store}`)
  if (typeof options !== 'object' || options === null) throw missing(`(got ${shown(options)})`)
  const { pool, sql }: Given = options
  if (pool !== undefined && sql !== undefined)
    throw misconfigured('postgresStore was given a pool and a sql: choose the one that your handlers use')
  if (sql !== undefined) return { sql: checked('sql', sql, isSql) }
  if (pool !== undefined) return { pool: checked('pool', pool, isPool) }
  throw missing('(got neither)')
}

function missing(got: string): LatchkeyError {
  return misconfigured(
    `postgresStore needs { pool: new Pool({ … }) } of pg, or { sql: postgres(…) } of postgres.js ${got}`,
  )
}

function checked<T>(name: string, value: unknown, is: (value: unknown) => value is T): T {
  if (is(value)) return value
  const wrong = wrongObject(value)
  if (wrong !== undefined) throw misconfigured(`postgresStore: ${name} is ${wrong.what}: write ${wrong.store}`)
  const wants = name === 'pool' ? 'a pool of pg with connect, query' : 'what postgres(…) of postgres.js returns'
  throw misconfigured(`postgresStore: ${name} must be ${wants} (got ${shown(value)})`)
}

/** A client also has both: but it is one connection, and has a process at the other end. */
function isPool(value: unknown): value is PgPool {
  if (typeof value !== 'object' || value === null || 'processID' in value) return false
  // Those of TypeORM: a pool has no transactions.
  return ['connect', 'query'].every(method => typeof Reflect.get(value, method) === 'function') && !('manager' in value)
}

/** Its types depend on the application's own; what is called of it is checked here. */
function isSql(value: unknown): value is SqlRoot {
  return isPostgresJs(value) && isSqlRoot(value)
}

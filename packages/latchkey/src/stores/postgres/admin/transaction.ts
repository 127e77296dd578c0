/** Several statements in one commit, and queries that end in time. */
import { LatchkeyError } from '../../../ports/errors.ts'
import { queryMsMax } from '../../shared/admin/limits.ts'
import { serverErrorOf } from '../connection/errors.ts'
import { inTransaction, type RunStatement } from '../connection/statement.ts'
import { type Beginning, beginReadCommitted, openTransaction } from '../connection/transaction.ts'
import type { PgPool } from '../driver.ts'
import type { Dialect } from '../sql/names.ts'

export interface Connections {
  readonly sql: Dialect
  readonly run: RunStatement
  readonly pool: PgPool
}

/** What `work` wrote is committed if its result `commits`. A COMMIT without an answer rejects: who repeats it has a request id. */
export function inOneCommit<T>(
  { pool, sql }: Connections,
  work: (run: RunStatement) => Promise<T>,
  commits: (value: T) => boolean = () => true,
): Promise<T> {
  return within(pool, sql, { begin: beginReadCommitted, work, commits })
}

// Compiling a plan takes longer than these queries do, and the planner, which guesses too many rows, chooses to.
const limit = `set local statement_timeout = ${queryMsMax}; set local jit = off`
const beginLimited: Beginning = {
  text: () => `BEGIN READ ONLY; ${limit}`,
  level: 'READ ONLY',
  rest: () => limit,
}

const queryCanceled = '57014'

/** Undefined: it took longer than a query of an operator may, and the server has ended it. */
export async function limited<T>(
  { pool, sql }: Connections,
  work: (run: RunStatement) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await within(pool, sql, { begin: beginLimited, work, commits: () => true })
  } catch (error) {
    if (serverErrorOf(error)?.code === queryCanceled) return undefined
    throw error
  }
}

interface Within<T> {
  readonly begin: Beginning
  readonly work: (run: RunStatement) => Promise<T>
  readonly commits: (value: T) => boolean
}

async function within<T>(pool: PgPool, sql: Dialect, { begin, work, commits }: Within<T>): Promise<T> {
  const transaction = await openTransaction({ pool, schema: sql.schema }, begin)
  let value: T
  try {
    value = await work(inTransaction(transaction.client, sql.schema))
  } catch (error) {
    await transaction.rollback()
    throw error
  }
  if (!commits(value)) {
    await transaction.rollback()
    return value
  }
  const end = await transaction.commit()
  if (end.kind === 'committed') return value
  const cause = 'cause' in end ? end.cause : undefined
  throw new LatchkeyError('store-unavailable', 'the commit of an operator’s act was not confirmed: repeat it', {
    cause,
  })
}

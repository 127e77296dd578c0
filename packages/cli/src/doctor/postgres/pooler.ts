/** A pooler in statement mode gives every statement another connection: no transaction can be opened through it. */
import type { PoolClient } from 'pg'
import { type Check, type Finding, ok } from '../finding.ts'
import type { PostgresUnderCheck } from './under-check.ts'

export function poolerCheck({ pool }: Pick<PostgresUnderCheck, 'pool'>): Check {
  return {
    name: 'pooler',
    async look() {
      const client = await pool.connect()
      const failure = await tryTransaction(client)
      // Whatever state the pooler left it in, nobody else gets it.
      client.release(failure !== undefined)
      return failure === undefined ? ok('transactions can be opened') : [refused(failure)]
    },
  }
}

async function tryTransaction(client: PoolClient): Promise<unknown> {
  try {
    await client.query('begin')
    await client.query('rollback')
    return undefined
  } catch (error) {
    return error
  }
}

function refused(error: unknown): Finding {
  return {
    verdict: 'FAIL',
    text: `no transaction can be opened: ${error instanceof Error ? error.message : String(error)}`,
    cure: 'PgBouncer must not be in statement mode: set pool_mode = transaction for this database in pgbouncer.ini, and reload it; or connect to PostgreSQL directly',
  }
}

/**
 * A transaction that the caller opened: with `pg` or postgres.js, Drizzle, Kysely or Prisma, recognised by shape, proven by the server.
 * Other libraries show the client of `pg` that they use.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import { shown } from '../../../ports/check-options.ts'
import type { PgQueryable, PgResult } from '../driver.ts'
import { isPostgresJs, isSqlRoot, type SqlScope } from '../postgres-js/driver.ts'
import { answerTo, queryOf } from '../postgres-js/query.ts'
import { isFailedTransaction, isOutsideTransaction, storeError } from './errors.ts'
import { directlyTo } from './transaction-client.ts'
import { clientOfPg, wrongObject } from './wrong-objects.ts'

/** A Kysely `Transaction`. Plugins are for the application's own tables and names: our statements are sent without them. */
interface KyselyTransaction {
  readonly isTransaction: true
  withoutPlugins(): KyselyTransaction
  executeQuery(query: CompiledQuery): Promise<{ readonly rows: readonly unknown[] }>
}

interface CompiledQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: readonly []
  }
  readonly queryId: { readonly queryId: string }
}

/** A Drizzle transaction; `rollback` is what the database object itself does not have. */
interface DrizzleTransaction {
  readonly _?: { readonly session?: { readonly client?: unknown } }
  execute(wrapper: { getSQL(): { toQuery(): { sql: string; params: unknown[] } } }): PromiseLike<PgResult>
  rollback(): never
}

/** What Prisma gives to the callback of `$transaction`; unlike the client itself it cannot connect. */
interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<readonly unknown[]>
}

/** How to send a statement in the caller's transaction; undefined: its shape is not known. */
export function queryableOf(tx: unknown): PgQueryable | undefined {
  if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null) return undefined
  const ours = directlyTo(tx)
  if (ours !== undefined) return ours
  if (isPostgresJs(tx)) return isSqlRoot(tx) ? undefined : throughPostgresJs(tx)
  if (isKyselyTransaction(tx)) return throughKysely(tx)
  if (isDrizzleTransaction(tx)) return throughDrizzle(tx)
  if (isPrismaTransaction(tx)) return throughPrisma(tx)
  return isPgClient(tx) ? tx : undefined
}

/** SAVEPOINT is refused outside a transaction block, which is the only proof that does not rely on the object. */
export async function proveTransaction(tx: unknown, schema: string): Promise<void> {
  const queryable = queryableOf(tx)
  if (queryable === undefined) throw notATransaction(tx, 'is not a transaction')
  try {
    await queryable.query('SAVEPOINT latchkey_proof')
    await queryable.query('RELEASE SAVEPOINT latchkey_proof')
  } catch (error) {
    if (isOutsideTransaction(error)) throw notATransaction(tx, 'is not inside a transaction', error)
    if (isFailedTransaction(error))
      throw new LatchkeyError(
        'not-a-transaction',
        'an earlier error has already ended this transaction: roll back, and run it again in a new one',
        { cause: error },
      )
    throw storeError(error, schema)
  }
}

function notATransaction(tx: unknown, why: string, cause?: unknown): LatchkeyError {
  const wrong = wrongObject(tx)
  const instead =
    wrong?.tx ??
    'hand in the client of pg after BEGIN, or the tx that your query builder gives to its transaction callback'
  return new LatchkeyError(
    'not-a-transaction',
    `${wrong?.what ?? shown(tx)} ${why}: ${wrong === undefined ? '' : 'write '}${instead}`,
    { cause },
  )
}

function isKyselyTransaction(tx: object): tx is KyselyTransaction {
  return 'isTransaction' in tx && tx.isTransaction === true && has(tx, 'executeQuery') && has(tx, 'withoutPlugins')
}

function isDrizzleTransaction(tx: object): tx is DrizzleTransaction {
  return has(tx, 'execute') && has(tx, 'rollback') && has(tx, 'select')
}

function isPrismaTransaction(tx: object): tx is PrismaTransaction {
  return has(tx, '$queryRawUnsafe') && !has(tx, '$connect')
}

/** Pools, and objects of TypeORM, also have `query`: on any connection, or with another result. */
function isPgClient(tx: object): tx is PgQueryable {
  return has(tx, 'query') && (wrongObject(tx)?.what ?? clientOfPg) === clientOfPg
}

function has(value: object, method: string): boolean {
  return method in value && typeof (value as Record<string, unknown>)[method] === 'function'
}

function throughPostgresJs(tx: SqlScope): PgQueryable {
  return { query: (text, values) => answerTo(queryOf(tx, text, values)) }
}

let queries = 0

function throughKysely(tx: KyselyTransaction): PgQueryable {
  return {
    async query(text, values = []) {
      queries += 1
      const { rows } = await tx.withoutPlugins().executeQuery({
        sql: text,
        parameters: values,
        query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
        // Any name unique in this process: Kysely only compares it.
        queryId: { queryId: `latchkey-${queries}` },
      })
      return { command: '', rows }
    },
  }
}

function throughPrisma(tx: PrismaTransaction): PgQueryable {
  return {
    query: async (text, values = []) => ({ command: '', rows: await tx.$queryRawUnsafe(text, ...values) }),
  }
}

function throughDrizzle(tx: DrizzleTransaction): PgQueryable {
  const client = tx._?.session?.client
  if (isPostgresJs(client)) return throughPostgresJs(client)
  return {
    // An async function, because Drizzle gives a thenable that runs only when it is awaited.
    async query(text, values = []) {
      return await tx.execute({ getSQL: () => ({ toQuery: () => ({ sql: text, params: values }) }) })
    },
  }
}

/** A shop whose store and handlers use postgres.js. It is looked at from outside through `pg`. */
import postgres from 'postgres'
import { postgresStore, type PostgresStore, type TransactionOf } from '../../src/stores/postgres/index.ts'
import { postgresShop, type Shop } from './fixture.ts'

export type Tx = TransactionOf<postgres.Sql>

export interface PostgresJsShop extends Shop {
  readonly store: PostgresStore<Tx>
  readonly sql: postgres.Sql
}

export async function postgresJsShop(
  url: string,
  options: { readonly max?: number; readonly prepare?: boolean } = {},
): Promise<PostgresJsShop> {
  const outside = await postgresShop(url)
  const opened: postgres.Sql[] = []
  const open = () => {
    const sql = postgres(url, { onnotice: () => {}, ...options })
    opened.push(sql)
    return sql
  }
  const sql = open()
  return {
    ...outside,
    sql,
    store: postgresStore({ sql }),
    another: async () => postgresStore({ sql: open() }),
    // What the store's transactor hands out is the sql of its transaction.
    order: async (tx, sku) => void (await (tx as Tx)`insert into orders values (${sku})`),
    async close() {
      await Promise.all(opened.map(each => each.end({ timeout: 5 })))
      await outside.close()
    },
  }
}

/** The shop on PostgreSQL, at the URL given by --store. */
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import { BadInput } from './flags.ts'
import type { Order, Payment, ShopDatabase } from './shop-database.ts'

export async function postgresDatabase(url: string): Promise<ShopDatabase<pg.PoolClient>> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => {})
  const store = postgresStore({ pool })
  try {
    await store.migrate()
    await pool.query(`
      create table if not exists orders (id serial primary key, account text not null, sku text not null);
      create table if not exists payments
        (id serial primary key, account text not null, amount integer not null, charge text)`)
  } catch (cause) {
    await pool.end()
    throw new BadInput(
      `the database at ${withoutPassword(url)} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
  return {
    store,
    name: `PostgreSQL at ${withoutPassword(url)}`,
    async insertOrder(tx, { account, sku }) {
      const { rows } = await tx.query<Order>(
        'insert into orders (account, sku) values ($1, $2) returning id, account, sku',
        [account, sku],
      )
      const [order] = rows
      if (order === undefined) throw new Error('insert … returning gave no row')
      return order
    },
    async orders(account) {
      const { rows } = await pool.query<Order>('select id, account, sku from orders where account = $1 order by id', [
        account,
      ])
      return rows
    },
    async insertPayment(tx, { account, amount }) {
      const text = 'insert into payments (account, amount) values ($1, $2) returning id'
      const { rows } = await tx.query<{ id: number }>(text, [account, amount])
      return rows[0]?.id ?? 0
    },
    async markCharged(tx, { id, charge }) {
      await tx.query('update payments set charge = $1 where id = $2', [charge, id])
    },
    async payments(account) {
      const text = 'select id, account, amount, charge from payments where account = $1 order by id'
      return (await pool.query<Payment>(text, [account])).rows
    },
    close: () => pool.end(),
  }
}

function withoutPassword(url: string): string {
  const parsed = new URL(url)
  parsed.password = ''
  return parsed.href
}

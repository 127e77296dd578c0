/** The shop on PostgreSQL, at the URL given by --store. */
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import { BadInput } from './flags.ts'
import type { Booking, Export, Order, Payment, ShopDatabase } from './shop-database.ts'

const tables = `
  create table if not exists orders (id serial primary key, account text not null, sku text not null);
  create table if not exists payments (id serial primary key, account text not null, amount integer not null,
    direction text not null, reference text collate "C" not null unique, charge text);
  create table if not exists exports (id serial primary key, account text not null,
    parts integer not null default 0, finished boolean not null default false);
  create table if not exists bookings (id serial primary key, account text not null, amount integer not null,
    direction text not null, payment integer not null)`

export async function postgresDatabase(url: string): Promise<ShopDatabase<pg.PoolClient>> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => {})
  const store = postgresStore({ pool })
  try {
    await store.migrate()
    await pool.query(tables)
  } catch (cause) {
    await pool.end()
    throw new BadInput(
      `the database at ${withoutPassword(url)} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
  const rows = async <T extends object>(text: string, ...values: unknown[]) => (await pool.query<T>(text, values)).rows
  return {
    store,
    name: `PostgreSQL at ${withoutPassword(url)}`,
    insertOrder: (tx, { account, sku }) =>
      one<Order>(tx, 'insert into orders (account, sku) values ($1, $2) returning id, account, sku', [account, sku]),
    orders: account => rows<Order>('select id, account, sku from orders where account = $1 order by id', account),
    async insertPayment(tx, { account, amount, direction, reference }) {
      const text = 'insert into payments (account, amount, direction, reference) values ($1, $2, $3, $4) returning id'
      return (await one<{ id: number }>(tx, text, [account, amount, direction, reference])).id
    },
    async markCharged(tx, { id, charge }) {
      await tx.query('update payments set charge = $1 where id = $2', [charge, id])
    },
    async removePayment(tx, id) {
      await tx.query('delete from payments where id = $1', [id])
    },
    payments: account => rows<Payment>('select * from payments where account = $1 order by id', account),
    paymentsAfter: (reference, limit) =>
      rows<Payment>('select * from payments where reference > $1 order by reference limit $2', reference, limit),
    async insertExport(tx, account) {
      return (await one<{ id: number }>(tx, 'insert into exports (account) values ($1) returning id', [account])).id
    },
    async addExportPart(tx, id) {
      await tx.query('update exports set parts = parts + 1 where id = $1', [id])
    },
    finishExport: (tx, id) =>
      one<Export>(tx, 'update exports set finished = true where id = $1 returning id, account, parts, finished', [id]),
    exports: account =>
      rows<Export>('select id, account, parts, finished from exports where account = $1 order by id', account),
    async insertBooking(tx, { account, amount, direction, payment }) {
      const text = 'insert into bookings (account, amount, direction, payment) values ($1, $2, $3, $4)'
      await tx.query(text, [account, amount, direction, payment])
    },
    bookings: account => rows<Booking>('select * from bookings where account = $1 order by id', account),
    pause: ms => holdKeys(url, ms),
    close: () => pool.end(),
  }
}

async function one<T extends object>(tx: pg.PoolClient, text: string, values: unknown[]): Promise<T> {
  const [row] = (await tx.query<T>(text, values)).rows
  if (row === undefined) throw new Error(`no row came back from: ${text}`)
  return row
}

function withoutPassword(url: string): string {
  const parsed = new URL(url)
  parsed.password = ''
  return parsed.href
}

/** Locks the table of keys as a migration gone wrong would, with a connection of its own. */
async function holdKeys(url: string, ms: number): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('begin')
  await client.query('lock table latchkey.keys in access exclusive mode')
  // Closing the connection ends the transaction.
  setTimeout(() => void client.end().catch(() => {}), ms)
}

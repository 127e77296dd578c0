/** The shop on SQLite: one file, no server. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { type SqliteTx, sqliteStore } from 'latchkey/stores/sqlite'
import type { Booking, Export, Order, Payment, ShopDatabase } from './shop-database.ts'

const tables = `
  create table if not exists orders (id integer primary key, account text not null, sku text not null) strict;
  create table if not exists payments (id integer primary key, account text not null, amount integer not null,
    direction text not null, reference text not null unique, charge text) strict;
  create table if not exists exports (id integer primary key, account text not null,
    parts integer not null default 0, finished integer not null default 0) strict;
  create table if not exists bookings (id integer primary key, account text not null, amount integer not null,
    direction text not null, payment integer not null) strict`

export async function sqliteDatabase(directory: string): Promise<ShopDatabase<SqliteTx>> {
  const path = join(directory, 'shop.db')
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  const reader = new Database(path)
  await store.exclusive(() => reader.exec(tables))
  // The driver returns rows as objects of the columns that each caller names.
  const rows = <T>(text: string, ...values: unknown[]) => reader.prepare(text).all(...values) as T[]
  const newId = (tx: SqliteTx, text: string, values: (string | number)[]) =>
    Number(tx.get(`${text} returning id`, values)?.['id'])
  return {
    store,
    name: `SQLite in ${path}`,
    async insertOrder(tx, { account, sku }) {
      return { id: newId(tx, 'insert into orders (account, sku) values (?, ?)', [account, sku]), account, sku }
    },
    async orders(account) {
      return rows<Order>('select id, account, sku from orders where account = ? order by id', account)
    },
    async insertPayment(tx, { account, amount, direction, reference }) {
      const text = 'insert into payments (account, amount, direction, reference) values (?, ?, ?, ?)'
      return newId(tx, text, [account, amount, direction, reference])
    },
    async markCharged(tx, { id, charge }) {
      tx.run('update payments set charge = ? where id = ?', [charge, id])
    },
    async removePayment(tx, id) {
      tx.run('delete from payments where id = ?', [id])
    },
    async payments(account) {
      return rows<Payment>('select * from payments where account = ? order by id', account)
    },
    async paymentsAfter(reference, limit) {
      return rows<Payment>('select * from payments where reference > ? order by reference limit ?', reference, limit)
    },
    async insertExport(tx, account) {
      return newId(tx, 'insert into exports (account) values (?)', [account])
    },
    async addExportPart(tx, id) {
      tx.run('update exports set parts = parts + 1 where id = ?', [id])
    },
    async finishExport(tx, id) {
      const row = tx.get('update exports set finished = 1 where id = ? returning account, parts', [id])
      return { id, account: String(row?.['account']), parts: Number(row?.['parts']), finished: true }
    },
    async exports(account) {
      const found = rows<Omit<Export, 'finished'> & { finished: number }>(
        'select id, account, parts, finished from exports where account = ? order by id',
        account,
      )
      return found.map(row => ({ ...row, finished: row.finished === 1 }))
    },
    async insertBooking(tx, { account, amount, direction, payment }) {
      const text = 'insert into bookings (account, amount, direction, payment) values (?, ?, ?, ?)'
      tx.run(text, [account, amount, direction, payment])
    },
    async bookings(account) {
      return rows<Booking>('select * from bookings where account = ? order by id', account)
    },
    pause: ms => holdFile(path, ms),
    async close() {
      reader.close()
      await store.close()
    },
  }
}

/** Another process holds the lock: in this one, the driver would wait for itself. */
async function holdFile(path: string, ms: number): Promise<void> {
  const program = fileURLToPath(new URL('./page/hold-sqlite.ts', import.meta.url))
  const holder = fork(program, [path, String(ms)], { execArgv: ['--import', 'tsx'] })
  await Promise.race([once(holder, 'message'), once(holder, 'exit')])
}

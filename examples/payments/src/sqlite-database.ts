/** The shop on SQLite: one file, no server. */
import { join } from 'node:path'
import Database from 'libsql'
import { type SqliteTx, sqliteStore } from 'latchkey/stores/sqlite'
import type { Order, Payment, ShopDatabase } from './shop-database.ts'

export async function sqliteDatabase(directory: string): Promise<ShopDatabase<SqliteTx>> {
  const path = join(directory, 'shop.db')
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  const reader = new Database(path)
  await store.exclusive(() => {
    reader.exec(`
      create table if not exists orders (id integer primary key, account text not null, sku text not null) strict;
      create table if not exists payments
        (id integer primary key, account text not null, amount integer not null, charge text) strict`)
  })
  return {
    store,
    name: `SQLite in ${path}`,
    async insertOrder(tx, { account, sku }) {
      const row = tx.get('insert into orders (account, sku) values (?, ?) returning id', [account, sku])
      return { id: Number(row?.['id']), account, sku }
    },
    async orders(account) {
      // The driver returns rows as objects of the columns that are named here.
      return reader.prepare('select id, account, sku from orders where account = ? order by id').all(account) as Order[]
    },
    async insertPayment(tx, { account, amount }) {
      const row = tx.get('insert into payments (account, amount) values (?, ?) returning id', [account, amount])
      return Number(row?.['id'])
    },
    async markCharged(tx, { id, charge }) {
      tx.run('update payments set charge = ? where id = ?', [charge, id])
    },
    async payments(account) {
      // As above.
      return reader
        .prepare('select id, account, amount, charge from payments where account = ? order by id')
        .all(account) as Payment[]
    },
    async close() {
      reader.close()
      await store.close()
    },
  }
}

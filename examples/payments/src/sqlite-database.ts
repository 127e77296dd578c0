/** The shop on SQLite: one file, no server. */
import { join } from 'node:path'
import Database from 'libsql'
import { type SqliteTx, sqliteStore } from 'latchkey/stores/sqlite'
import type { Order, ShopDatabase } from './shop-database.ts'

export async function sqliteDatabase(directory: string): Promise<ShopDatabase<SqliteTx>> {
  const path = join(directory, 'shop.db')
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  const reader = new Database(path)
  await store.exclusive(() => {
    reader.exec(
      'create table if not exists orders (id integer primary key, account text not null, sku text not null) strict',
    )
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
    async close() {
      reader.close()
      await store.close()
    },
  }
}

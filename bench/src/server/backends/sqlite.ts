/** SQLite, in a file of its own. */
import Database from 'libsql'
import { sqliteStore } from 'latchkey/stores/sqlite'
import type { Backend } from './backend.ts'

export async function sqliteBackend(path: string): Promise<Backend> {
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  const own = new Database(path)
  await store.exclusive(
    () => void own.exec('create table if not exists orders (id integer primary key, sku text not null) strict'),
  )
  const insertText = 'insert into orders (sku) values (?) returning id'
  const insertOwn = own.prepare(insertText)
  const idOf = (row: unknown) => Number((row as { id: number | bigint }).id)
  const count = (sql: string) => Number((own.prepare(`select count(*) as n from ${sql}`).get() as { n: number }).n)
  return {
    store,
    // One handle is one transaction: the application's own writes take turns, too.
    transaction: work =>
      store.exclusive(async () => {
        own.exec('begin immediate')
        try {
          const value = await work(async sku => idOf(insertOwn.get(sku)))
          own.exec('commit')
          return value
        } catch (error) {
          own.exec('rollback')
          throw error
        }
      }),
    insertIn(tx) {
      // Handed out by the store's own transactor.
      const { get } = tx as { get(sql: string, parameters: string[]): unknown }
      return async sku => idOf(get(insertText, [sku]))
    },
    stored: async () => ({
      rows: count('latchkey_keys'),
      completed: count('latchkey_keys where state = 2'),
      businessRows: count('orders'),
    }),
    async settings() {
      const [journal] = own.prepare('pragma journal_mode').all() as { journal_mode: string }[]
      return `SQLite: journal_mode=${journal?.journal_mode} synchronous=FULL (set by the store on its own handles)`
    },
  }
}

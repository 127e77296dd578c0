/** The store of a subject, a business table beside it, and what it says about its own durability. */
import Database from 'libsql'
import pg from 'pg'
import type { Store } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { postgresStore } from 'latchkey/stores/postgres'
import { sqliteStore } from 'latchkey/stores/sqlite'
import type { ServerArgument } from './server-process.ts'

export interface Backend {
  readonly store: Store
  /** The handler's own transaction, as an application without Latchkey writes it. */
  transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T>
  insert(tx: unknown, sku: string): Promise<number>
  businessRows(): Promise<number>
  settings(): Promise<string>
}

export async function openBackend({ store, place }: ServerArgument): Promise<Backend | undefined> {
  if (store === 'memory') return memoryBackend()
  if (store === 'sqlite') return sqliteBackend(place)
  return store === 'postgres' ? postgresBackend(place) : undefined
}

function memoryBackend(): Backend {
  const none = () => Promise.reject(new Error('the memory store has no business tables'))
  return {
    store: memoryStore(),
    transaction: none,
    insert: none,
    businessRows: async () => 0,
    settings: async () => 'memory: not durable',
  }
}

async function sqliteBackend(path: string): Promise<Backend> {
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  const own = new Database(path)
  await store.exclusive(
    () => void own.exec('create table if not exists orders (id integer primary key, sku text not null) strict'),
  )
  const insertText = 'insert into orders (sku) values (?) returning id'
  const insertOwn = own.prepare(insertText)
  return {
    store,
    // One handle is one transaction: the application's own writes take turns, too.
    transaction: work =>
      store.exclusive(async () => {
        own.exec('begin immediate')
        try {
          const value = await work(undefined)
          own.exec('commit')
          return value
        } catch (error) {
          own.exec('rollback')
          throw error
        }
      }),
    async insert(tx, sku) {
      // Handed out by the store's own transactor, or absent in the application's own transaction.
      const sqliteTx = tx as { get(sql: string, parameters: string[]): Record<string, unknown> | undefined } | undefined
      const row = sqliteTx === undefined ? insertOwn.get(sku) : sqliteTx.get(insertText, [sku])
      return Number((row as Record<string, unknown> | undefined)?.['id'])
    },
    businessRows: async () => Number((own.prepare('select count(*) as n from orders').get() as { n: number }).n),
    async settings() {
      const [journal] = own.prepare('pragma journal_mode').all() as { journal_mode: string }[]
      return `sqlite: journal_mode=${journal?.journal_mode} synchronous=FULL (set by the store on its own handles)`
    },
  }
}

async function postgresBackend(url: string): Promise<Backend> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const store = postgresStore({ pool })
  await store.migrate()
  await pool.query('create table if not exists orders (id bigserial primary key, sku text not null)')
  return {
    store,
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const value = await work(client)
        await client.query('commit')
        return value
      } finally {
        client.release()
      }
    },
    async insert(tx, sku) {
      const { rows } = await (tx as pg.PoolClient).query<{ id: string }>(
        'insert into orders (sku) values ($1) returning id',
        [sku],
      )
      return Number(rows[0]?.id)
    },
    businessRows: async () => Number((await pool.query<{ n: string }>('select count(*) as n from orders')).rows[0]?.n),
    async settings() {
      const names = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method']
      const values = await Promise.all(names.map(name => pool.query<Record<string, string>>(`show ${name}`)))
      return `postgres: ${names.map((name, i) => `${name}=${values[i]?.rows[0]?.[name]}`).join(' ')}`
    },
  }
}

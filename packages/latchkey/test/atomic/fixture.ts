/** Where atomic operations are tried: a real database with a table of the application's, looked at from outside. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import pg from 'pg'
import type { Attempt, Work } from '../../src/engine/answer.ts'
import type { AtomicExecution } from '../../src/engine/execution.ts'
import { systemClock } from '../../src/ports/clock.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { type SqliteStore, sqliteStore, type SqliteStoreOptions, type SqliteTx } from '../../src/stores/sqlite/index.ts'
import { idOf } from '../engine/fixture.ts'

export interface Shop {
  readonly store: Store
  /** A store over connections of its own, as another process has. */
  another(): Promise<Store>
  /** An order of the application's, through the handler's transaction. */
  order(tx: unknown, sku: string): Promise<void>
  /** What is committed: orders, key rows and outcomes named so, counted in one statement on a connection of its own. */
  committed(name: string): Promise<Committed>
  /** As good as the store's clock moved on: every instant of its rows is moved back. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

export interface Committed {
  readonly orders: number
  readonly keys: number
  readonly outcomes: number
}

export const nothing: Committed = { orders: 0, keys: 0, outcomes: 0 }
export const everything: Committed = { orders: 1, keys: 1, outcomes: 1 }

/** Inserts one order named like the key, then ends as told. Counts its calls. */
export function ordering(shop: Shop, sku: string, end: () => Attempt | Promise<Attempt>): Counted {
  const work: Work<AtomicExecution<unknown>> = async ({ tx }) => {
    counted.calls += 1
    await shop.order(tx, sku)
    return end()
  }
  const counted = { calls: 0, work }
  return counted
}

export interface Counted {
  calls: number
  readonly work: Work<AtomicExecution<unknown>>
}

// A small outcome is a column of its key.
const countSql = (schema: string, parameter: (at: number) => string) => `select
  (select count(*) from orders where sku = ${parameter(1)}) as orders,
  (select count(*) from ${schema}keys where id = ${parameter(2)}) as keys,
  (select count(*) from ${schema}outcomes where id = ${parameter(2)})
    + (select count(outcome) from ${schema}keys where id = ${parameter(2)}) as outcomes`

/** `settings`: of the server, for every connection of the stores. */
export async function postgresShop(url: string, { max = 10, settings = '' } = {}): Promise<Shop & { pool: pg.Pool }> {
  const pools: pg.Pool[] = []
  const openPool = (options: pg.PoolConfig): pg.Pool => {
    const pool = new pg.Pool({ connectionString: url, ...options })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    pools.push(pool)
    return pool
  }
  const ownPool = () => openPool({ max, ...(settings === '' ? {} : { options: settings }) })
  const outside = openPool({ max: 2 })
  const pool = ownPool()
  const store = postgresStore({ pool })
  await store.migrate()
  await outside.query('create table if not exists orders (sku text not null)')
  return {
    pool,
    store,
    another: async () => postgresStore({ pool: ownPool() }),
    // What the store's transactor hands out is a client of its pool.
    order: async (tx, sku) => void (await (tx as pg.PoolClient).query('insert into orders values ($1)', [sku])),
    async committed(name) {
      const { rows } = await outside.query<Record<string, string>>(
        countSql('latchkey.', at => `$${at}`),
        [name, idOf(name)],
      )
      return counts(rows[0] ?? {})
    },
    async advance(ms) {
      const instants = ['created_at', 'granted_at', 'expires_at', 'locked_until', 'due_at', 'completed_at']
      const moved = instants.map(column => `${column} = ${column} - $1 * interval '1 millisecond'`)
      await outside.query(`update latchkey.keys set ${moved.join(', ')}`, [ms])
    },
    close: async () => void (await Promise.all(pools.map(each => each.end()))),
  }
}

export interface SqliteShop extends Shop {
  readonly store: SqliteStore
  readonly path: string
  /** A handle of the application's own. */
  readonly app: Database.Database
}

export async function sqliteShop(options: Partial<SqliteStoreOptions> = {}): Promise<SqliteShop> {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-atomic-'))
  const path = join(directory, 'shop.db')
  const stores: SqliteStore[] = []
  // Generous waits: on a busy machine nobody is to be turned away for want of time, unless a test says so.
  const open = async () => {
    const store = sqliteStore({
      path,
      open: file => new Database(file),
      waitMs: 20_000,
      transactionMs: 20_000,
      ...options,
    })
    stores.push(store)
    await store.migrate()
    return store
  }
  const app = new Database(path)
  app.exec('pragma journal_mode = wal; pragma busy_timeout = 5000; create table orders (sku text not null) strict')
  const outside = new Database(path)
  const store = await open()
  return {
    path,
    app,
    store,
    another: open,
    // What the store's transactor hands out runs one statement at a time.
    order: async (tx, sku) => void (tx as SqliteTx).run('insert into orders values (?1)', [sku]),
    async committed(name) {
      // libsql's own typing of rows is `unknown`; the statement names its columns.
      const [row] = outside.prepare(countSql('latchkey_', at => `?${at}`)).all([name, idOf(name)]) as Record<
        string,
        number
      >[]
      return counts(row ?? {})
    },
    async advance(ms) {
      const instants = ['created_at_ms', 'expires_at_ms', 'locked_until_ms', 'due_at_ms', 'completed_at_ms']
      app
        .prepare(`update latchkey_keys set ${instants.map(column => `${column} = ${column} - ?1`).join(', ')}`)
        .run([ms])
    },
    async close() {
      for (const each of stores) await each.close()
      app.close()
      outside.close()
      await rm(directory, { recursive: true })
    },
  }
}

export async function memoryShop(): Promise<Shop> {
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const store = memoryStore({ clock, waitMs: 20_000, transactionMs: 20_000 })
  return {
    store,
    another: async () => store,
    // What the store's transactor hands out has tables of ours.
    order: async (tx, sku) => (tx as MemoryTx).table('orders').set(crypto.randomUUID(), sku),
    async committed(name) {
      const orders = store.table<string>('orders').entries()
      const record = await store.read(idOf(name))
      return counts({
        orders: orders.filter(([, sku]) => sku === name).length,
        keys: record === undefined ? 0 : 1,
        outcomes: record?.outcome === undefined ? 0 : 1,
      })
    },
    advance: async ms => {
      aheadMs += ms
    },
    close: async () => {},
  }
}

function counts({ orders, keys, outcomes }: Record<string, string | number>): Committed {
  return { orders: Number(orders), keys: Number(keys), outcomes: Number(outcomes) }
}

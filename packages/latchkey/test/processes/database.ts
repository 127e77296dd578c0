/** Where the processes of one test meet: a PostgreSQL database or a SQLite file, with the test's own two tables; a Redis; or one process alone, in memory. */
import { Redis } from 'ioredis'
import Database from 'libsql'
import pg from 'pg'
import type { Store } from 'latchkey'
import { memoryStore, type MemoryStore, type MemoryTx } from 'latchkey/stores/memory'
import { postgresStore } from 'latchkey/stores/postgres'
import { redisStore } from 'latchkey/stores/redis'
import { sqliteStore } from 'latchkey/stores/sqlite'
import { createKeyring } from '../../src/engine/sealed/keyring.ts'
import { sealedStore } from '../../src/engine/sealed/store.ts'
import { systemClock } from '../../src/ports/clock.ts'
import { underA } from '../sealed/keys.ts'

export interface Place {
  readonly store: Store
  migrate(): Promise<void>
  /** Autocommitted on a connection of its own: it stays when the handler's transaction does not. */
  countExecution(label: string): Promise<void>
  executions(label: string): Promise<number>
  /** Through the handler's transaction. */
  insert(tx: unknown, label: string): Promise<void>
  businessRows(label: string): Promise<number>
  close(): Promise<void>
}

const batchingOff = '?batching=off'

/** For a suite that runs without group commit, too. Travels with the URL, into every process of the test. */
export function withoutBatching(url: string): string {
  return `${url}${batchingOff}`
}

const encrypted = 'encrypted+'

/** A URL is PostgreSQL or Redis, `memory:name` a memory store of this process, anything else a SQLite file. Each may be `encrypted+`. */
export async function openPlace(place: string): Promise<Place> {
  if (place.startsWith(encrypted)) {
    const below = await openPlace(place.slice(encrypted.length))
    return { ...below, store: sealedStore(below.store, createKeyring(underA, systemClock)) }
  }
  if (place.startsWith('memory:')) return memoryPlace(place)
  if (place.startsWith('redis:')) return redisPlace(place)
  return place.startsWith('postgres') ? postgresPlace(place) : sqlitePlace(place)
}

async function postgresPlace(url: string): Promise<Place> {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  // A killed server breaks idle connections; the pool replaces them.
  pool.on('error', () => {})
  const store = postgresStore({ pool, batching: !url.endsWith(batchingOff) })
  const count = async (table: string, label: string) => {
    const { rows } = await pool.query<{ n: string }>(`select count(*) as n from ${table} where label = $1`, [label])
    return Number(rows[0]?.n)
  }
  return {
    store,
    async migrate() {
      await store.migrate()
      await pool.query('create table executions (label text not null); create table business (label text not null)')
    },
    countExecution: async label => void (await pool.query('insert into executions values ($1)', [label])),
    executions: label => count('executions', label),
    // What the store's transactor hands out is a client of the pool above.
    insert: async (tx, label) => void (await (tx as pg.PoolClient).query('insert into business values ($1)', [label])),
    businessRows: label => count('business', label),
    close: () => pool.end(),
  }
}

async function sqlitePlace(path: string): Promise<Place> {
  const store = sqliteStore({ path, open: file => new Database(file) })
  // Executions live in a file of their own: SQLite has one writer, and the handler's transaction may be it.
  const counter = new Database(`${path}.executions`)
  counter.exec('pragma busy_timeout = 5000; create table if not exists executions (label text not null)')
  const reader = new Database(path)
  const count = (database: Database.Database, table: string, label: string) => {
    const row = database.prepare(`select count(*) as n from ${table} where label = ?`).get(label) as { n: number }
    return row.n
  }
  return {
    store,
    async migrate() {
      await store.migrate()
      await store.exclusive(() => void reader.exec('create table business (label text not null)'))
    },
    countExecution: async label => void counter.prepare('insert into executions values (?)').run(label),
    executions: async label => count(counter, 'executions', label),
    async insert(tx, label) {
      // What the store's transactor hands out runs one statement at a time.
      const sqliteTx = tx as { run(sql: string, parameters: string[]): unknown }
      sqliteTx.run('insert into business values (?)', [label])
    },
    businessRows: async label => count(reader, 'business', label),
    async close() {
      counter.close()
      reader.close()
      await store.close()
    },
  }
}

function redisPlace(url: string): Place {
  const client = new Redis(url, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  return {
    store: redisStore({ client }),
    migrate: async () => {},
    countExecution: async label => void (await client.incr(`executions:${label}`)),
    executions: async label => Number(await client.get(`executions:${label}`)),
    insert: () => Promise.reject(new Error('Redis has no transactions')),
    businessRows: async () => 0,
    close: async () => client.disconnect(),
  }
}

interface Memory {
  readonly store: MemoryStore
  readonly executions: Map<string, number>
}

/** By their names: opened again, a place is the same. */
const memories = new Map<string, Memory>()

function memoryPlace(name: string): Place {
  const memory = memories.get(name) ?? { store: memoryStore(), executions: new Map() }
  memories.set(name, memory)
  const { store, executions } = memory
  return {
    store,
    migrate: async () => {},
    countExecution: async label => void executions.set(label, (executions.get(label) ?? 0) + 1),
    executions: async label => executions.get(label) ?? 0,
    // What the store's transactor hands out has tables of ours.
    insert: async (tx, label) => (tx as MemoryTx).table('business').set(crypto.randomUUID(), label),
    businessRows: async label => {
      const rows = store.table<string>('business').entries()
      return rows.filter(([, value]) => value === label).length
    },
    close: async () => {},
  }
}

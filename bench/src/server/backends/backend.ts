/** The store of a subject, a business table beside it, and what stands in it after a run. */
import type pg from 'pg'
import type { Store } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import type { Insert } from '../order.ts'
import { postgresBackend } from './postgres.ts'
import { redisBackend } from './redis.ts'
import { sqliteBackend } from './sqlite.ts'
import { tieredBackend } from './tiered.ts'

export interface Stored {
  readonly rows: number
  readonly completed: number
  readonly businessRows: number
}

export interface Backend {
  readonly store: Store
  readonly pool?: pg.Pool
  /** The handler's own transaction, as an application without Latchkey writes it. */
  transaction<T>(work: (insert: Insert) => Promise<T>): Promise<T>
  /** The same insert in a transaction that Latchkey opened. */
  insertIn(tx: unknown): Insert
  /** Straight from the tables: what Latchkey says about itself proves nothing. */
  stored(): Promise<Stored | undefined>
  /** Durability as the store's own connections see it. */
  settings(): Promise<string>
}

export async function openBackend(store: string | undefined, place: string): Promise<Backend | undefined> {
  if (store === 'memory') return memoryBackend()
  if (store === 'sqlite') return sqliteBackend(place)
  if (store === 'redis') return redisBackend(place)
  if (store === 'tiered') return tieredBackend(place)
  return store === 'postgres' ? postgresBackend(place) : undefined
}

function memoryBackend(): Backend {
  const none = () => {
    throw new Error('the memory store has no business tables')
  }
  return {
    store: memoryStore(),
    transaction: none,
    insertIn: none,
    stored: async () => undefined,
    settings: async () => 'memory: not durable',
  }
}

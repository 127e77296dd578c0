/** PostgreSQL with a cache in Redis in front of it. */
import { Redis } from 'ioredis'
import { tieredStore } from 'latchkey/stores/tiered'
import type { Backend } from './backend.ts'
import { operationName } from '../operations.ts'
import { postgresBackend } from './postgres.ts'

/** `place`: the address of the database, a space, and that of the cache. */
export async function tieredBackend(place: string): Promise<Backend> {
  const [database = '', cache = ''] = place.split(' ')
  const backend = await postgresBackend(database)
  const client = new Redis(cache, { maxRetriesPerRequest: 1 })
  return { ...backend, store: tieredStore({ store: backend.store, cache: client, operations: [operationName] }) }
}

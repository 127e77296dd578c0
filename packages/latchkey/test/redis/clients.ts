/** Both clients of Redis, as tests open them: an outage is an error at once. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { RedisClient } from '../../src/stores/shared/redis/driver.ts'

export interface OpenClient {
  readonly client: RedisClient
  close(): Promise<void>
}

export interface ClientKind {
  readonly name: string
  open(url: string): Promise<OpenClient>
}

export async function openIoredis(url: string): Promise<OpenClient & { readonly client: Redis }> {
  const client = new Redis(url, { maxRetriesPerRequest: 1, retryStrategy: () => 50, lazyConnect: true })
  client.on('error', () => {})
  await client.connect()
  return { client, close: async () => client.disconnect() }
}

async function openNodeRedis(url: string): Promise<OpenClient> {
  const client = createClient({ url, socket: { reconnectStrategy: () => 50 }, disableOfflineQueue: true })
  client.on('error', () => {})
  await client.connect()
  return { client, close: async () => client.destroy() }
}

export const clientKinds: readonly ClientKind[] = [
  { name: 'ioredis', open: openIoredis },
  { name: 'node-redis', open: openNodeRedis },
]

/** The keys in Redis, at the URL given by --store. */
import { createClient } from 'redis'
import { redisStore, type RedisStore } from 'latchkey/stores/redis'
import { BadInput } from './flags.ts'

export interface RedisKeys {
  readonly store: RedisStore
  /** One line for the person who started the playground. */
  readonly name: string
  /** Nobody can write for this long. Resolves when it has begun. */
  pause(ms: number): Promise<void>
  close(): Promise<void>
}

const connectTimeoutMs = 5_000

export async function redisKeys(url: string): Promise<RedisKeys> {
  const { host, pathname } = new URL(url)
  const place = `redis://${host}${pathname}`
  const client = createClient({ url, disableOfflineQueue: true, socket: { connectTimeout: connectTimeoutMs } })
  // A connection that breaks is made anew; without a listener it would end the process.
  client.on('error', () => {})
  const refused = (why: string) => {
    client.destroy()
    return new BadInput(`the Redis at ${place} cannot be used: ${why}`)
  }
  const store = redisStore({ client })
  const found = await connected(client)
    .then(() => store.check())
    .catch((error: unknown) => {
      throw refused(error instanceof Error ? error.message : String(error))
    })
  if (found.kind !== 'fit') throw refused(found.message)
  return {
    store,
    name: `Redis at ${place}`,
    async pause(ms) {
      await client.sendCommand(['CLIENT', 'PAUSE', String(ms), 'WRITE'])
    },
    close: async () => client.destroy(),
  }
}

/** The client itself tries for ever. */
async function connected(client: {
  connect(): Promise<unknown>
  once(event: 'error', tell: (error: Error) => void): unknown
}) {
  const failed = new Promise<never>((_, reject) => client.once('error', reject))
  await Promise.race([client.connect(), failed])
}

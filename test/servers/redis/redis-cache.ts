/** A Redis that is only a cache, as the guide sets it up: it keeps nothing over a restart, evicts, and is broken as a nemesis likes. */
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { signal } from '../processes.ts'
import { startRedis } from './redis-server.ts'

/** `flushed` loses everything at once, `killed` is away for a while and comes back empty, `frozen` accepts calls and answers none of them in time. */
export const cacheFaults = ['flushed', 'killed', 'frozen'] as const
export type CacheFault = (typeof cacheFaults)[number]

export interface RedisCache {
  readonly url: string
  /** Returns when it serves again. `ms`: how long it does not. */
  harm(fault: CacheFault, ms: number): Promise<void>
  stop(): Promise<void>
}

export async function startRedisCache(): Promise<RedisCache> {
  const server = await startRedis({ appendonly: 'no', maxmemory: '16mb', 'maxmemory-policy': 'allkeys-lru' })
  return {
    url: server.url,
    async harm(fault, ms) {
      switch (fault) {
        case 'flushed':
          return flush(server.url)
        case 'killed':
          await server.kill()
          await delay(ms)
          return server.restart()
        case 'frozen':
          signal(server.pid, 'SIGSTOP')
          await delay(ms)
          return signal(server.pid, 'SIGCONT')
      }
    },
    stop: () => server.stop(),
  }
}

async function flush(url: string): Promise<void> {
  const client = new Redis(url)
  try {
    await client.flushall()
  } finally {
    client.disconnect()
  }
}

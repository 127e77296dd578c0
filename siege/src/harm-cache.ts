/** The cache loses what it has, dies and is silent, all the time: innocents must not notice. */
import { setTimeout as delay } from 'node:timers/promises'
import { type CacheFault, cacheFaults, type RedisCache } from '../../test/servers/redis/redis-cache.ts'
import type { Random } from '../../torture/src/random.ts'

export interface Harm {
  /** Returns when the cache serves again: what was done to it, and how often. May be called twice. */
  stop(): Promise<Readonly<Record<CacheFault, number>>>
}

export function harmCache(cache: RedisCache, random: Random): Harm {
  const counts: Record<CacheFault, number> = { flushed: 0, killed: 0, frozen: 0 }
  let stopped = false
  const working = (async () => {
    while (!stopped) {
      await delay(random.between(500, 2_500))
      const fault = random.pick(cacheFaults)
      counts[fault] += 1
      await cache.harm(fault, random.between(200, 2_000))
    }
  })()
  return {
    async stop() {
      stopped = true
      await working
      return counts
    },
  }
}

/** The cache loses what it has, dies and is silent, all the time: innocents must not notice. */
import { setTimeout as delay } from 'node:timers/promises'
import { type CacheFault, cacheFaults, type RedisCache } from '../../test/servers/redis/redis-cache.ts'
import type { Random } from '../../torture/src/random.ts'

export interface Harm {
  /** Returns when the cache serves again: what was done to it, and how often. Rejects if it did not come back. May be called twice. */
  stop(): Promise<Readonly<Record<CacheFault, number>>>
}

export function harmCache(cache: RedisCache, random: Random): Harm {
  const counts: Record<CacheFault, number> = { flushed: 0, killed: 0, frozen: 0 }
  let waiting: readonly CacheFault[] = []
  let stopped = false
  const working = harmInTurn()
  // Until somebody asks how it went, a failure is nobody's.
  working.catch(() => {})

  /** Until it is told to stop, and in a short run until each fault has happened once. */
  async function harmInTurn(): Promise<void> {
    while (!stopped || cacheFaults.some(fault => counts[fault] === 0)) {
      await delay(random.between(500, 2_500))
      const fault = nextFault()
      counts[fault] += 1
      await cache.harm(fault, random.between(200, 2_000))
    }
  }

  /** Each fault once, in random order, then again. */
  function nextFault(): CacheFault {
    if (waiting.length === 0) waiting = cacheFaults
    const fault = random.pick(waiting)
    waiting = waiting.filter(other => other !== fault)
    return fault
  }

  return {
    async stop() {
      stopped = true
      await working
      return counts
    },
  }
}

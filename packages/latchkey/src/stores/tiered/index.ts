import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { systemClock } from '../../ports/clock.ts'
import { misconfigured } from '../../ports/errors.ts'
import { durationUpTo, having, listOf, text } from '../../ports/option-kinds.ts'
import type { Store } from '../../ports/store.ts'
import { checkClient } from '../shared/redis/check-client.ts'
import type { RedisClient } from '../shared/redis/driver.ts'
import { senderOf } from '../shared/redis/sender.ts'
import { type CacheFigures, openTier } from './cache/tier.ts'
import { withTier } from './store.ts'

export type { CacheFigures } from './cache/tier.ts'
export type { IoredisClient, NodeRedisClient, RedisArgument, RedisClient } from '../shared/redis/driver.ts'

export interface TieredStoreOptions<S extends Store = Store> {
  /** The store that decides: `postgresStore({ pool })`. Every process that uses its tables is given the same cache. */
  readonly store: S
  /**
   * A client of ioredis or of node-redis (connected), for one server or a cluster. It may be shared with the application. The server may evict what it
   * likes, and needs no log: never the one that `redisStore` keeps its keys in.
   */
  readonly cache: RedisClient
  /** The names of the operations whose answers go through the cache. No default: it pays where one key is asked for many times. */
  readonly operations: readonly string[]
  /** What all keys begin with. Default: `lkc`. Change it when several applications share one cache. */
  readonly prefix?: string
  /**
   * Once a duplicate of a running request was refused, the next ones are refused from the cache for so long, at most 5 s and what is left of the lease.
   * Default: off, the database is asked each time. It only ever refuses, and may do so that much longer than the request runs.
   */
  readonly heldMs?: number
}

export interface Tiered {
  /** Counted since the start of this process. */
  cacheFigures(): CacheFigures
  /**
   * When it resolves, no process answers from what was stored before. Call it after the database was restored, failed over, or changed by a process without
   * the cache.
   */
  flushCache(): Promise<void>
}

const tieredChecks: ChecksOf<TieredStoreOptions> = {
  store: having('a store', 'claim', 'read', 'forget'),
  cache: { wants: 'a client', fits: () => true },
  operations: listOf(text),
  prefix: text,
  heldMs: durationUpTo(5_000, 'because a client may be asked to wait that long for nothing'),
}

/**
 * A store with Redis in front of it, which has completed rows only. A retry is answered from the cache as the store would answer it; everything else is
 * the store's. The cache grants nothing, and losing it costs only reads.
 */
export function tieredStore<S extends Store>(options: TieredStoreOptions<S>): S & Tiered {
  checkOptions('tieredStore', options, tieredChecks)
  const { store, operations, prefix = 'lkc', heldMs = 0 } = options
  if (store === undefined) throw misconfigured('tieredStore: store is missing: postgresStore({ pool })')
  const client = checkClient('tieredStore: cache', options.cache)
  if (operations === undefined || operations.length === 0)
    throw misconfigured(
      `tieredStore: operations names those that go through the cache: operations: ['payments.create']`,
    )
  const chosen = new Set(operations)
  const covers = (operation: string) => chosen.has(operation)
  const tier = openTier({ sender: senderOf(client), covers, prefix, heldMs, clock: systemClock })
  return {
    ...withTier(store, tier, systemClock),
    cacheFigures: () => tier.figures,
    flushCache: () => tier.flush(),
  }
}

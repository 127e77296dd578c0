import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { count, flag, nested, text, waitedMs } from '../../ports/option-kinds.ts'
import { checkClient } from '../shared/redis/check-client.ts'
import type { RedisClient } from '../shared/redis/driver.ts'
import { isIoredis } from '../shared/redis/sender.ts'
import type { ReplicaOptions } from './connection/replicas.ts'
import { isCluster, openRedisStore, type RedisStore, type RedisStoreOptions } from './store.ts'

export type { ReplicaOptions } from './connection/replicas.ts'
export type { IoredisClient, NodeRedisClient, RedisArgument, RedisClient } from '../shared/redis/driver.ts'
export type { RedisStore, RedisStoreOptions } from './store.ts'

const replicaChecks: ChecksOf<ReplicaOptions> = { wait: count, timeoutMs: waitedMs }

const redisChecks: ChecksOf<RedisStoreOptions> = {
  client: { wants: 'a client', fits: () => true },
  prefix: {
    ...text,
    wants: 'a text without braces',
    fits: value => typeof value === 'string' && /^[^{}]+$/.test(value),
  },
  replicas: nested(replicaChecks),
  allowEviction: flag,
}

/**
 * Keys in Redis 7.0 or later: one server, Sentinel or Cluster. Fenced and counted by the server's clock, without transactions: guarded operations, deferred
 * ones, and phased ones with effects.
 */
export function redisStore(options: RedisStoreOptions): RedisStore {
  checkOptions('redisStore', options, redisChecks)
  const client = checkClient('redisStore: client', options.client)
  const { replicas } = options
  if (replicas !== undefined) {
    const { wait, timeoutMs } = replicas
    if (wait === undefined || timeoutMs === undefined)
      throw misconfigured('redisStore: replicas needs both: replicas: { wait: 1, timeoutMs: 200 }')
    const why = whyNoWait(client)
    if (why !== undefined) throw misconfigured(`redisStore: replicas needs a client of one connection: ${why}`)
  }
  return openRedisStore(options)
}

/** WAIT must follow its script on the same connection. Undefined: the client does that. */
function whyNoWait(client: RedisClient): string | undefined {
  if (isCluster(client))
    return 'WAIT of a cluster client goes to any server. Leave replicas out, or use one master, with or without Sentinel'
  if (isIoredis(client)) return undefined
  if (client.totalClients !== undefined)
    return 'createClientPool of node-redis sends WAIT on whichever connection is free, where it speaks about the writes of others. Leave replicas out, or use createClient({ url })'
  if (client.getSentinelNode === undefined) return undefined
  return 'createSentinel of node-redis sends WAIT again on another connection, where it proves nothing. Leave replicas out, or use new Redis({ sentinels, name }) of ioredis'
}

/** The few methods used of ioredis and of node-redis. Typed by shape, so that the application brings its own version of either. */

/** What a script is given. node-redis takes no numbers. */
export type RedisArgument = string | Buffer

/**
 * A connection was made, or made anew. Of a single server; of a server in a cluster of node-redis; of one in a cluster of ioredis; of the master that
 * the sentinels of node-redis name.
 */
export type ConnectionEvent = 'ready' | 'node-ready' | '+node' | 'topology-change'

/** `Redis` or `Cluster` of ioredis. */
export interface IoredisClient {
  callBuffer(command: string, args: RedisArgument[]): Promise<unknown>
  on(event: ConnectionEvent, listener: () => void): unknown
  /** Of a single server, not of a cluster. */
  wait?(replicas: number, timeoutMs: number): Promise<number>
  readonly isCluster?: boolean
  /** The socket of a single server, once there is one. */
  readonly stream?: { cork?(): void; uncork?(): void }
}

/** What `createClient`, `createClientPool`, `createCluster` or `createSentinel` of node-redis returns. */
export interface NodeRedisClient {
  // Generic over its mapping, which no shape can name: what comes back is called as `NodeRedisBytes`.
  withTypeMapping(mapping: never): unknown
  on(event: ConnectionEvent, listener: () => void): unknown
  /** Of a single server, not of a cluster. */
  wait?(replicas: number, timeoutMs: number): Promise<number>
  /** Of a cluster. */
  readonly masters?: unknown
  /** Of sentinels. */
  readonly getSentinelNode?: unknown
  /** Of a pool. */
  readonly totalClients?: unknown
}

/** The same client, with replies as the bytes that were stored. */
export interface NodeRedisBytes {
  evalSha(sha: string, options: NodeRedisEval): Promise<unknown>
  eval(text: string, options: NodeRedisEval): Promise<unknown>
}

export interface NodeRedisEval {
  readonly keys: string[]
  readonly arguments: RedisArgument[]
}

export type RedisClient = IoredisClient | NodeRedisClient

/** A bulk string, an integer, nil, or a list of these. Scripts return no maps, which the two clients show differently. */
export type Reply = Buffer | number | null | readonly Reply[]

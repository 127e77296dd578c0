import { createClientPool } from 'redis'
import { describe, expect, it } from 'vitest'
import { redisStore } from './index.ts'

/** The shape of one: nothing is sent. */
const client = { callBuffer: async () => null, on: () => undefined }
const nodeRedis = { withTypeMapping: () => ({}), on: () => undefined }
const replicas = { wait: 1, timeoutMs: 200 }

describe('redisStore', () => {
  it.each([
    [undefined, 'the options must be an object'],
    [{}, 'client is missing: new Redis(url) of ioredis, or createClient({ url }) of node-redis'],
    [{ client: 'redis://localhost' }, 'it takes a client, and no address'],
    [{ client: {} }, 'client must be new Redis(url) of ioredis'],
    [{ client, prefix: 'a{b}' }, 'prefix must be a text without braces'],
    [{ client, prefixes: 'a' }, 'did you mean prefix?'],
    [{ client, replicas: { wait: 1 } }, 'replicas: { wait: 1, timeoutMs: 200 }'],
    [{ client, replicas: { wait: 1, timeoutMs: 0 } }, 'replicas.timeoutMs must be a number above 0'],
    [{ client: { ...client, isCluster: true }, replicas }, 'WAIT of a cluster client goes to any server'],
    [{ client: { ...nodeRedis, masters: [] }, replicas }, 'WAIT of a cluster client goes to any server'],
    [{ client: { ...nodeRedis, getSentinelNode: () => undefined }, replicas }, 'use new Redis({ sentinels, name })'],
    // A real one, of which nothing but its shape tells that it is a pool. It connects when it is told to.
    [{ client: createClientPool(), replicas }, 'createClientPool of node-redis sends WAIT on whichever connection'],
  ])('refuses %j', (options, message) => {
    expect(() => redisStore(options as never)).toThrow(message)
  })
})

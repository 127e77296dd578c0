import { describe, expect, it } from 'vitest'
import { redisStore } from './index.ts'

/** The shape of one: nothing is sent. */
const client = { callBuffer: async () => null, on: () => undefined }

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
    [{ client: { ...client, isCluster: true }, replicas: { wait: 1, timeoutMs: 1 } }, 'needs a client of one master'],
  ])('refuses %j', (options, message) => {
    expect(() => redisStore(options as never)).toThrow(message)
  })
})

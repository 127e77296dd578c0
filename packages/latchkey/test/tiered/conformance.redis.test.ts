/** The store cases with the cache in front of the memory store. `conformance.proof.pg.test.ts` has them in front of PostgreSQL. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runStoreCases } from '@latchkey/conformance'
import { describeRedis } from '../../../../test/servers/redis/describe-redis.ts'
import { memoryHarness } from '../memory/fixture.ts'
import { checkStoreModel } from '../properties/store-properties.ts'
import { openIoredis } from '../redis/clients.ts'
import { type CacheServer, tieredHarness } from './harness.ts'

describeRedis('the memory store with a cache in front conforms:', own => {
  let server: CacheServer
  const closing: (() => Promise<void>)[] = []
  beforeAll(async () => {
    const [cache, outside] = await Promise.all([openIoredis(own.server.url), openIoredis(own.server.url)])
    closing.push(cache.close, outside.close)
    server = { client: cache.client, outside: outside.client, cached: { hits: 0 } }
  })
  afterAll(() => Promise.all(closing.map(close => close())))

  const open = () => tieredHarness(memoryHarness(), server)
  runStoreCases(open, it, { elsewhere: ['outbox'] })

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 20 }), 120_000)

  it('has answered from the cache in all of this', () => {
    expect(server.cached.hits).toBeGreaterThan(20)
  })
})

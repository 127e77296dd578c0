/** Every store case with the cache in front of PostgreSQL, with both clients. A part of `npm run proof`. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { runStoreCases, runUnreadableCases } from '@latchkey/conformance'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { startRedis } from '../../../../test/servers/redis/redis-server.ts'
import { postgresHarness } from '../postgres/fixture.ts'
import { checkStoreModel } from '../properties/store-properties.ts'
import { clientKinds, openIoredis } from '../redis/clients.ts'
import { type CacheServer, tieredHarness } from './harness.ts'

for (const kind of clientKinds) {
  describePostgres(`the postgres store with a cache in front, by ${kind.name}, conforms:`, database => {
    let pool: pg.Pool
    let server: CacheServer
    const closing: (() => Promise<unknown>)[] = []
    beforeAll(async () => {
      const redis = await startRedis()
      closing.push(() => redis.stop())
      pool = new pg.Pool({ connectionString: database.url, max: 30 })
      // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
      pool.on('error', () => {})
      const [cache, outside] = await Promise.all([kind.open(redis.url), openIoredis(redis.url)])
      closing.push(cache.close, outside.close, () => pool.end())
      server = { client: cache.client, outside: outside.client, cached: { hits: 0 } }
    })
    afterAll(async () => {
      for (const close of closing.toReversed()) await close()
    })

    const open = () => tieredHarness(postgresHarness(pool), server)
    runStoreCases(open, it, { elsewhere: ['outbox'] })
    runUnreadableCases(open, it)

    it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 20 }), 300_000)

    it('has answered from the cache in all of this', () => {
      expect(server.cached.hits).toBeGreaterThan(20)
    })
  })
}

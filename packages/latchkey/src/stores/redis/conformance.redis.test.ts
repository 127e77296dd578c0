import { runStoreCases, runUnreadableCases } from '@latchkey/conformance'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { clientKinds, type OpenClient, openIoredis } from '../../../test/redis/clients.ts'
import { redisHarness } from '../../../test/redis/fixture.ts'

const selection = { faculties: ['steps', 'reconciliation', 'ledgers'] } as const

for (const kind of clientKinds) {
  describeRedis(`the redis store on ${kind.name} conforms:`, own => {
    let opened: OpenClient
    let outside: OpenClient & { readonly client: Redis }
    beforeAll(async () => {
      opened = await kind.open(own.server.url)
      outside = await openIoredis(own.server.url)
    })
    afterAll(async () => {
      await opened.close()
      await outside.close()
    })
    const harness = async () => redisHarness(opened.client, outside.client)

    runStoreCases(harness, it, selection)
    runUnreadableCases(harness, it, selection)

    it('agrees with the model, whatever callers do', () => checkStoreModel(harness, { numRuns: 10 }), 120_000)

    it('has looked for no key by a pattern in all of this', async () => {
      const used = await outside.client.info('commandstats')
      expect(used).toContain('cmdstat_evalsha')
      expect(used).not.toMatch(/cmdstat_(keys|scan|sscan|hscan|zscan)/)
    })
  })
}

/** What the store finds out about its server before it grants anything, and after a server was replaced. */
import { afterEach, describe, expect, it } from 'vitest'
import { describeRedis } from '../../../../../../test/servers/redis/describe-redis.ts'
import { startRedis, type RedisServer, type RedisSettings } from '../../../../../../test/servers/redis/redis-server.ts'
import { clientKinds, type OpenClient, openIoredis } from '../../../../test/redis/clients.ts'
import { claimRequest, own } from '../../../../test/redis/requests.ts'
import { createLatchkey } from '../../../engine/latchkey.ts'
import type { Telemetry } from '../../../ports/telemetry.ts'
import { silentTelemetry } from '../../../ports/telemetry.ts'
import { redisStore } from '../index.ts'

describeRedis('the self-check of the redis store', common => {
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close()
  })

  async function start(settings: RedisSettings): Promise<RedisServer> {
    const server = await startRedis(settings)
    closing.push(() => server.stop())
    return server
  }

  async function connect(url: string, kind = clientKinds[0]): Promise<OpenClient> {
    if (kind === undefined) throw new Error('there are two clients')
    const opened = await kind.open(url)
    closing.push(() => opened.close())
    return opened
  }

  describe.each(clientKinds)('on $name', kind => {
    it('passes a server that writes a log and evicts nothing', async () => {
      const { client } = await connect(common.server.url, kind)
      const store = redisStore({ client })
      expect(await store.check()).toEqual({ kind: 'fit' })
      expect(store.traits.durable).toBe(true)
    })

    it('refuses a server that may evict keys, names the setting, and takes it when told to', async () => {
      const server = await start({ maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' })
      const { client } = await connect(server.url, kind)
      const store = redisStore({ client })
      expect(await store.check()).toMatchObject({ kind: 'unsafe', message: expect.stringContaining('allkeys-lru') })
      await expect(store.claim(claimRequest('evicted'))).rejects.toMatchObject({ code: 'store-unsafe' })
      await own(redisStore({ client, allowEviction: true }), 'evicted')
    })

    it('refuses a replica', async () => {
      const server = await start({ replicaof: `127.0.0.1 ${common.server.port}` })
      const { client } = await connect(server.url, kind)
      const store = redisStore({ client })
      expect(await store.check()).toMatchObject({ kind: 'read-only', message: expect.stringContaining('replica of') })
      await expect(store.claim(claimRequest('read only'))).rejects.toMatchObject({ code: 'store-read-only' })
    })
  })

  it('takes a policy that cannot act, because there is no limit', async () => {
    const server = await start({ maxmemory: '0', 'maxmemory-policy': 'allkeys-lru' })
    const { client } = await connect(server.url)
    expect(await redisStore({ client }).check()).toEqual({ kind: 'fit' })
  })

  it('serves from a server without a log, denies that it is durable, and reports it', async () => {
    const server = await start({ appendonly: 'no' })
    const { client } = await connect(server.url)
    const store = redisStore({ client })
    const reports: string[] = []
    const telemetry: Telemetry = { ...silentTelemetry, report: message => void reports.push(message) }
    const latchkey = createLatchkey({ store, scope: () => 'acme', telemetry })
    const operation = latchkey.guarded('orders.create', { onFailure: 'hold' })
    expect(await operation.run({ scope: 'acme', key: 'k', input: {} }, async () => 1)).toBe(1)
    expect(reports).toEqual([expect.stringContaining('appendonly yes')])
    expect(store.traits.durable).toBe(false)
  })

  it.each(clientKinds)('checks again after a reconnect, on $name', async kind => {
    const server = await start({ maxmemory: '100mb', 'maxmemory-policy': 'noeviction' })
    const { client } = await connect(server.url, kind)
    const store = redisStore({ client })
    await own(store, 'before')
    const outside = await openIoredis(server.url)
    closing.push(() => outside.close())
    await outside.client.config('SET', 'maxmemory-policy', 'volatile-lru')
    await own(store, 'not noticed yet')
    await outside.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    const refused = () =>
      store.claim(claimRequest('after')).then(
        () => 'granted',
        (error: { code: string }) => error.code,
      )
    await expect.poll(refused, { timeout: 5_000 }).toBe('store-unsafe')
  })

  it.each(clientKinds)('counts a server that was started again, and no mere reconnect, on $name', async kind => {
    const server = await start({})
    const { client } = await connect(server.url, kind)
    const counts: string[] = []
    const telemetry: Telemetry = {
      ...silentTelemetry,
      observe: () => {},
      count: (metric, { detail }) => metric === 'store.failover' && void counts.push(detail ?? ''),
    }
    const latchkey = createLatchkey({ store: redisStore({ client }), scope: () => 'acme', telemetry })
    const operation = latchkey.guarded('orders.create', { onFailure: 'hold' })
    let keys = 0
    const isServed = () =>
      operation.run({ scope: 'acme', key: `k${(keys += 1)}`, input: {} }, () => true).catch(() => false)
    expect(await isServed()).toBe(true)
    const outside = await openIoredis(server.url)
    closing.push(() => outside.close())
    await outside.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await expect.poll(isServed, { timeout: 5_000 }).toBe(true)
    expect(counts).toEqual([])
    await server.kill()
    await server.restart()
    await expect.poll(isServed, { timeout: 10_000 }).toBe(true)
    expect(counts).toEqual(['redis'])
  })

  it('checks again with every sweep', async () => {
    const server = await start({ maxmemory: '100mb', 'maxmemory-policy': 'noeviction' })
    const { client } = await connect(server.url)
    const store = redisStore({ client })
    await own(store, 'before')
    const outside = await openIoredis(server.url)
    closing.push(() => outside.close())
    await outside.client.config('SET', 'maxmemory-policy', 'volatile-lru')
    await store.sweep({ limit: 10 })
    await expect(store.claim(claimRequest('after'))).rejects.toMatchObject({ code: 'store-unsafe' })
  })
})
